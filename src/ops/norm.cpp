// Norms with an activation, by our kernels or by ATen's. Source: torch.nn.functional.
#include "ops/norm.h"

#include <ATen/ATen.h>

#include "ops/instance_norm.h"

namespace cytra::ops {
namespace {

/// Of a tensor that nobody else has: in place where the derivative allows it.
at::Tensor activate_result(const at::Tensor& x, const Activation& activation) {
  if (activation.kind == Activation::kRelu) return at::relu_(const_cast<at::Tensor&>(x));
  return activate(x, activation);
}

}  // namespace

at::Tensor activate(const at::Tensor& x, const Activation& activation) {
  switch (activation.kind) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kLeakyRelu:
      return at::leaky_relu(x, activation.slope);
    case Activation::kGelu:
      return at::gelu(x);
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kElu:
      return at::elu(x, activation.slope);
  }
  return x;
}

at::Tensor instance_norm(const at::Tensor& x,
                         const at::Tensor& weight,
                         const at::Tensor& bias,
                         double eps,
                         const Activation& activation) {
  if (weight.defined() && activation.kind <= Activation::kLeakyRelu) {
    const double slope = activation.kind == Activation::kNone   ? 1
                         : activation.kind == Activation::kRelu ? 0
                                                                : activation.slope;
    return instance_norm_leaky_relu(x, weight, bias, eps, slope);
  }
  return activate_result(at::instance_norm(x, weight, bias, {}, {}, true, 0.1, eps, true),
                         activation);
}

at::Tensor group_norm(const at::Tensor& x,
                      int64_t groups,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      double eps,
                      const Activation& activation) {
  return activate_result(at::group_norm(x, groups, weight, bias, eps), activation);
}

at::Tensor batch_norm(const at::Tensor& x,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      const RunningStatistics& running,
                      bool training,
                      double eps,
                      const Activation& activation) {
  return activate_result(
      at::batch_norm(
          x, weight, bias, running.mean, running.variance, training, running.momentum, eps, true),
      activation);
}

at::Tensor layer_norm(const at::Tensor& x,
                      at::IntArrayRef normalized_shape,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      double eps,
                      const Activation& activation) {
  return activate_result(at::layer_norm(x, normalized_shape, weight, bias, eps), activation);
}

}  // namespace cytra::ops
