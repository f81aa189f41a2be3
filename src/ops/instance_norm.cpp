#include "ops/instance_norm.h"

#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "ops/instance_norm_cpu.h"

namespace cytra::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Whether the normalised input can be found again from the output without a loss of digits that
/// would show in a gradient: (output - bias) / weight is off by about 1e-7 |bias / weight|.
bool is_invertible(const at::Tensor& weight, const at::Tensor& bias, double slope) {
  // At slope 1 nobody else keeps the output, so keeping it saves nothing.
  if (!(slope >= 1e-3 && slope < 1)) return false;
  const float* w = weight.const_data_ptr<float>();
  const float* b = bias.const_data_ptr<float>();
  for (int64_t c = 0; c < weight.numel(); ++c) {
    if (!(std::abs(w[c]) > 1e-20F && std::abs(b[c]) <= 30 * std::abs(w[c]))) return false;
  }
  return true;
}

struct InstanceNorm : torch::autograd::Function<InstanceNorm> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            double eps,
                            double slope) {
    const cpu::Normalized result = cpu::instance_norm(x, weight, bias, eps, slope);
    // The next layer keeps the output anyway; keeping it here too lets go of the input.
    const bool keeps_output = is_invertible(weight, bias, slope);
    context->save_for_backward({keeps_output ? result.output : x, weight, bias, result.statistics});
    context->saved_data["slope"] = slope;
    context->saved_data["keeps_output"] = keeps_output;
    return result.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (at::GradMode::is_enabled()) {
      throw std::logic_error("instance_norm_leaky_relu has no second derivative");
    }
    const variable_list saved = context->get_saved_variables();
    const cpu::Kept kept{saved[0],
                         context->saved_data["keeps_output"].toBool(),
                         saved[1],
                         saved[2],
                         saved[3],
                         context->saved_data["slope"].toDouble()};
    cpu::Gradients g = cpu::instance_norm_backward(kept, grads.at(0), context->needs_input_grad(0));
    if (!context->needs_input_grad(1)) g.weight = at::Tensor();
    if (!context->needs_input_grad(2)) g.bias = at::Tensor();
    return {g.x, g.weight, g.bias, {}, {}};
  }
};

at::Tensor reference(const at::Tensor& x,
                     const at::Tensor& weight,
                     const at::Tensor& bias,
                     double eps,
                     double slope) {
  at::Tensor y = at::instance_norm(x, weight, bias, {}, {}, true, 0.1, eps, true);
  if (slope == 1) return y;
  // In place has no derivative at a negative slope.
  return slope < 0 ? at::leaky_relu(y, slope) : at::leaky_relu_(y, slope);
}

}  // namespace

at::Tensor instance_norm_leaky_relu(const at::Tensor& x,
                                    const at::Tensor& weight,
                                    const at::Tensor& bias,
                                    double eps,
                                    double negative_slope) {
  if (torch::jit::tracer::isTracing()) return reference(x, weight, bias, eps, negative_slope);
  const bool needs_grad = at::GradMode::is_enabled() &&
                          (x.requires_grad() || weight.requires_grad() || bias.requires_grad());
  // What autocast makes of a convolution's output. Converting twice is faster than ATen's own path;
  // with gradients it would keep the float32 copy, twice the memory.
  const bool is_converted =
      !needs_grad && x.device().is_cpu() && at::isReducedFloatingType(x.scalar_type());
  const at::Tensor input = is_converted ? x.to(at::kFloat) : x;
  if (!cpu::is_supported(input, weight, bias)) {
    return reference(x, weight, bias, eps, negative_slope);
  }
  if (needs_grad) return InstanceNorm::apply(input, weight, bias, eps, negative_slope);
  const at::Tensor y = cpu::instance_norm(input, weight, bias, eps, negative_slope).output;
  return is_converted ? y.to(x.scalar_type()) : y;
}

}  // namespace cytra::ops
