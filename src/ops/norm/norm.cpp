// Norms with an activation: our kernels where they take the tensors, ATen's otherwise, and in a
// trace. What the backward pass keeps: In-Place Activated BatchNorm, arXiv:1712.02616.
#include "ops/norm/norm.h"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "base/error.h"
#include "ops/norm/cpu.h"
#include "ops/norm/gpu.h"

namespace cytra::ops {
namespace {

using cpu::NormForm;
using Optional = std::optional<at::Tensor>;  // of a Function's input that may be undefined
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Whether the normalised input can be found again from the output without a loss of digits that
/// would show in a gradient: (output - bias) / weight is off by a unit of the output's last place
/// times |bias / weight|.
bool is_invertible(const at::Tensor& weight, const at::Tensor& bias, double slope, bool is_short) {
  // Keeping the output saves nothing with slope 1: no activation keeps it then.
  if (!(slope >= 1e-3 && slope < 1)) return false;
  if (!weight.defined()) return true;
  const float* w = weight.const_data_ptr<float>();
  const float* b = bias.const_data_ptr<float>();
  const float most = is_short ? 3 : 30;
  for (int64_t c = 0; c < weight.numel(); ++c) {
    if (!(std::abs(w[c]) > 1e-20F && std::abs(b[c]) <= most * std::abs(w[c]))) return false;
  }
  return true;
}

cpu::Normalized normalize_here(const at::Tensor& x,
                               const at::Tensor& weight,
                               const at::Tensor& bias,
                               const NormForm& form,
                               const at::Tensor& fixed,
                               bool in_place = false) {
  return x.is_cpu() ? cpu::normalize(x, weight, bias, form, fixed, in_place)
                    : gpu::normalize(x, weight, bias, form);
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& x,
                               const Optional& given_weight,
                               const Optional& given_bias,
                               const Optional& given_fixed,
                               const NormForm& form) {
    const at::Tensor weight = given_weight.value_or(at::Tensor()),
                     bias = given_bias.value_or(at::Tensor()),
                     fixed = given_fixed.value_or(at::Tensor());
    const cpu::Normalized result = normalize_here(x, weight, bias, form, fixed);
    // The next layer keeps the output anyway; keeping it here, too, makes the input unnecessary.
    const bool keeps_output =
        x.is_cpu() && is_invertible(weight, bias, form.slope, x.scalar_type() != at::kFloat);
    context->save_for_backward(
        {keeps_output ? result.output : x, weight, bias, result.statistics, result.coefficients});
    context->set_materialize_grads(false);  // no zeros for the statistics
    context->saved_data["keeps_output"] = keeps_output;
    context->saved_data["is_fixed"] = fixed.defined();
    context->saved_data["groups"] = form.groups;
    context->saved_data["across_batch"] = form.across_batch;
    context->saved_data["eps"] = form.eps;
    context->saved_data["slope"] = form.slope;
    context->mark_non_differentiable({result.statistics});
    return {result.output, result.statistics};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (at::GradMode::is_enabled()) throw std::logic_error("a norm has no second derivative");
    const variable_list tensors = context->get_saved_variables();
    auto& data = context->saved_data;
    const cpu::SavedForBackward saved{tensors[0],
                                      data["keeps_output"].toBool(),
                                      data["is_fixed"].toBool(),
                                      tensors[1],
                                      tensors[2],
                                      tensors[3],
                                      tensors[4],
                                      {data["groups"].toInt(),
                                       data["across_batch"].toBool(),
                                       data["eps"].toDouble(),
                                       data["slope"].toDouble()}};
    const auto run = saved.tensor.is_cpu() ? cpu::normalize_backward : gpu::normalize_backward;
    cpu::Gradients g = run(saved, grads.at(0), context->needs_input_grad(0));
    const bool is_affine = saved.weight.defined();
    if (!is_affine || !context->needs_input_grad(1)) g.weight = at::Tensor();
    if (!is_affine || !context->needs_input_grad(2)) g.bias = at::Tensor();
    return {g.x, g.weight, g.bias, {}, {}};
  }
};

Optional optional_of(const at::Tensor& tensor) {
  return tensor.defined() ? Optional(tensor) : std::nullopt;
}

at::Tensor in_float(const at::Tensor& parameter) {
  return parameter.defined() ? parameter.to(at::kFloat) : parameter;
}

/// Normalises by our kernels; `statistics` gets those of the batch.
at::Tensor run_kernels(at::Tensor x,
                       const at::Tensor& given_weight,
                       const at::Tensor& given_bias,
                       const NormForm& form,
                       const at::Tensor& fixed = {},
                       at::Tensor* statistics = nullptr) {
  const at::Tensor weight = in_float(given_weight), bias = in_float(given_bias);
  const bool needs_grad =
      at::GradMode::is_enabled() &&
      (x.requires_grad() || (weight.defined() && (weight.requires_grad() || bias.requires_grad())));
  if (needs_grad) {
    const variable_list results =
        NormFunction::apply(x, optional_of(weight), optional_of(bias), optional_of(fixed), form);
    if (statistics != nullptr) *statistics = results[1];
    return results[0];
  }
  const bool is_own = x.use_count() == 1 && x.storage().use_count() == 1;
  const cpu::Normalized result = normalize_here(x, weight, bias, form, fixed, is_own);
  if (statistics != nullptr) *statistics = result.statistics;
  return result.output;
}

bool has_kernel(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return !torch::jit::tracer::isTracing() &&
         (cpu::is_supported(x, weight, bias) || gpu::is_supported(x, weight, bias));
}

/// The slope of an activation that the kernels contain; 1 when there is none, or it comes after
/// them.
double fused_slope(const Activation& activation) {
  if (activation.kind == Activation::kRelu) return 0;
  return activation.kind == Activation::kLeakyRelu ? activation.slope : 1;
}

at::Tensor activate_rest(const at::Tensor& y, const Activation& activation) {
  const bool is_fused = activation.kind <= Activation::kLeakyRelu;
  return is_fused ? y : activate(y, activation);
}

/// The activation of a tensor that nothing else uses: in place where that has a derivative and
/// saves memory.
at::Tensor activate_own(at::Tensor y, const Activation& activation) {
  if (activation.kind == Activation::kRelu) return at::relu_(y);
  if (activation.kind == Activation::kLeakyRelu && activation.slope >= 0)
    return at::leaky_relu_(y, activation.slope);
  return activate(y, activation);
}

/// The values that each of `parts` equal parts of `x` has.
int64_t values_of(const at::Tensor& x, int64_t parts) {
  return parts > 0 ? x.numel() / parts : 0;
}

}  // namespace

at::Tensor activate(const at::Tensor& x, const Activation& activation) {
  switch (activation.kind) {
    case Activation::kNone:
      break;
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

at::Tensor instance_norm(at::Tensor x,
                         const at::Tensor& weight,
                         const at::Tensor& bias,
                         double eps,
                         const Activation& activation) {
  expect_several(x, values_of(x, x.size(0) * x.size(1)), "instance");
  if (!has_kernel(x, weight, bias)) {
    return activate_own(at::instance_norm(x, weight, bias, {}, {}, true, 0.1, eps, true),
                        activation);
  }
  const NormForm form{x.size(1), false, eps, fused_slope(activation)};
  return activate_rest(run_kernels(std::move(x), weight, bias, form), activation);
}

at::Tensor group_norm(at::Tensor x,
                      int64_t groups,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      double eps,
                      const Activation& activation) {
  if (groups > 0) expect_several(x, values_of(x, groups), "group");
  if (!has_kernel(x, weight, bias) || groups < 1 || x.size(1) % groups != 0)
    return activate_own(at::group_norm(x, groups, weight, bias, eps), activation);
  const NormForm form{groups, false, eps, fused_slope(activation)};
  return activate_rest(run_kernels(std::move(x), weight, bias, form), activation);
}

at::Tensor batch_norm(at::Tensor x,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      const RunningStatistics& running,
                      bool training,
                      double eps,
                      const Activation& activation) {
  for (const at::Tensor* statistics : {&running.mean, &running.variance}) {
    TORCH_CHECK(!running.mean.defined() ||
                    (statistics->dim() == 1 && x.dim() > 1 && statistics->size(0) == x.size(1)),
                "expected running statistics of each channel of (",
                x.sizes(),
                ")");
  }
  const bool is_fixed = !training && running.mean.defined();
  if (!is_fixed) expect_several(x, values_of(x, x.size(1)), "batch");
  if (!x.is_cpu() || !has_kernel(x, weight, bias)) {
    return activate_own(at::batch_norm(x,
                                       weight,
                                       bias,
                                       running.mean,
                                       running.variance,
                                       !is_fixed,
                                       running.momentum,
                                       eps,
                                       true),
                        activation);
  }
  const NormForm form{x.size(1), true, eps, fused_slope(activation)};
  if (is_fixed) {
    const at::Tensor fixed = at::stack({running.mean, running.variance}, 1).to(at::kDouble);
    return activate_rest(run_kernels(std::move(x), weight, bias, form, fixed), activation);
  }
  at::Tensor statistics;
  const at::Tensor y = run_kernels(std::move(x), weight, bias, form, {}, &statistics);
  if (running.mean.defined()) {
    const at::NoGradGuard no_grad;
    const double count = static_cast<double>(y.numel() / y.size(1)), momentum = running.momentum;
    running.mean.mul_(1 - momentum).add_(statistics.select(1, 0), momentum);
    // What is remembered is the unbiased variance.
    running.variance.mul_(1 - momentum)
        .add_(statistics.select(1, 1), momentum * count / (count - 1));
  }
  return activate_rest(y, activation);
}

at::Tensor layer_norm(const at::Tensor& x,
                      at::IntArrayRef normalized_shape,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      double eps,
                      const Activation& activation) {
  return activate_own(at::layer_norm(x, normalized_shape, weight, bias, eps), activation);
}

void expect_several(const at::Tensor& x, int64_t values, const char* norm) {
  if (values != 1) return;
  throw DataError(
      "{} norm of ({}): one value has no variance, expected more than 1 value per channel: a "
      "larger patch_shape or image, a smaller network, {}or another norm",
      norm,
      fmt::join(x.sizes(), ","),
      std::string_view(norm) == "batch"
          ? "a larger data.batch_size, data.drop_last=true where an epoch's last batch is short, "
          : "");
}

}  // namespace cytra::ops
