#include "ops/conv/conv.h"

#include <optional>
#include <stdexcept>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/TracerMode.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "ops/conv/backward.h"
#include "ops/conv/onednn.h"
#include "ops/conv/winograd/winograd.h"

namespace cytra::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Shows an operation of ours to torch's profilers and to nn::FlopCounter while it lives.
class ProfiledOperation {
 public:
  ProfiledOperation(const char* name, std::vector<c10::IValue> inputs)
      : inputs_(std::move(inputs)), record_(at::RecordScope::FUNCTION) {
    if (record_.isActive())
      record_.before(name, c10::ArrayRef<const c10::IValue>(inputs_.data(), inputs_.size()));
  }
  void end(const at::Tensor& output) {
    if (record_.needsOutputs()) record_.setOutputs(std::vector<c10::IValue>{output});
  }

 private:
  std::vector<c10::IValue> inputs_;
  at::RecordFunction record_;
};

struct ConvFunction : torch::autograd::Function<ConvFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const ConvOptions& options) {
    context->save_for_backward({x, weight});
    auto& data = context->saved_data;
    data["has_bias"] = bias.has_value();
    data["stride"] = options.stride.vec();
    data["padding"] = options.padding.vec();
    data["dilation"] = options.dilation.vec();
    data["transposed"] = options.transposed;
    data["output_padding"] = options.output_padding.vec();
    data["groups"] = options.groups;
    return cpu::convolution(x, weight, bias.value_or(at::Tensor()), options);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (at::GradMode::is_enabled())
      throw std::logic_error("a convolution on a CPU has no second derivative");
    const variable_list saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const auto stride = data["stride"].toIntVector(), padding = data["padding"].toIntVector(),
               dilation = data["dilation"].toIntVector(),
               output_padding = data["output_padding"].toIntVector();
    const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
    const ProfiledOperation record("cytra::convolution_backward", {grads[0], saved[0], saved[1]});
    const auto [x, weight, bias] =
        cpu::conv_gradients(grads[0],
                            saved[0],
                            saved[1],
                            {stride,
                             padding,
                             dilation,
                             data["transposed"].toBool(),
                             output_padding,
                             data["groups"].toInt()},
                            {context->needs_input_grad(0),
                             context->needs_input_grad(1),
                             data["has_bias"].toBool() && context->needs_input_grad(2)});
    return {x, weight, bias, {}};
  }
};

at::Tensor by_torch(const at::Tensor& x,
                    const at::Tensor& weight,
                    const at::Tensor& bias,
                    const ConvOptions& options) {
  // at::convolution is not called, because autocast does not know it.
  const auto& [stride, padding, dilation, transposed, more, groups, kept] = options;
  const bool is_flat = stride.size() == 2;
  if (transposed) {
    return is_flat ? at::conv_transpose2d(x, weight, bias, stride, padding, more, groups, dilation)
                   : at::conv_transpose3d(x, weight, bias, stride, padding, more, groups, dilation);
  }
  return is_flat ? at::conv2d(x, weight, bias, stride, padding, dilation, groups)
                 : at::conv3d(x, weight, bias, stride, padding, dilation, groups);
}

/// Checks what kernels read by pointer. Throws: c10::Error for what torch refuses, too.
void expect_fitting(const at::Tensor& x,
                    const at::Tensor& weight,
                    const at::Tensor& bias,
                    const ConvOptions& options) {
  const std::size_t dims = options.stride.size();
  bool fits = x.dim() == static_cast<int64_t>(dims) + 2 && weight.dim() == x.dim() &&
              options.padding.size() == dims && options.dilation.size() == dims &&
              (!options.transposed || options.output_padding.size() == dims);
  TORCH_CHECK(fits, "expected a batch of images, and one number for each of their sides");
  for (std::size_t d = 0; fits && d < dims; ++d) {
    const auto side = static_cast<int64_t>(d) + 2;
    fits = options.stride[d] > 0 && options.dilation[d] > 0 && options.padding[d] >= 0 &&
           weight.size(side) > 0 &&
           (options.transposed ? options.output_padding[d] >= 0
                               : x.size(side) + 2 * options.padding[d] >
                                     options.dilation[d] * (weight.size(side) - 1));
  }
  const int64_t groups = options.groups, in = weight.size(options.transposed ? 0 : 1),
                out = weight.size(options.transposed ? 1 : 0);
  fits = fits && groups > 0 && groups <= x.size(1) &&
         x.size(1) == (options.transposed ? in : in * groups) &&
         (options.transposed ? in : out) % groups == 0;
  TORCH_CHECK(fits, "its weights of (", weight.sizes(), ") do not fit images of (", x.sizes(), ")");
  TORCH_CHECK(!bias.defined() ||
                  (bias.dim() == 1 && bias.size(0) == (options.transposed ? out * groups : out)),
              "expected a bias for each channel of the output");
}

/// The type that a convolution on a CPU computes in.
at::ScalarType type_for(const at::Tensor& x) {
  return at::autocast::is_autocast_enabled(at::kCPU) ? at::autocast::get_autocast_dtype(at::kCPU)
                                                     : x.scalar_type();
}

/// torch's operations, for a trace: in float32 where ours compute in it for these shapes.
at::Tensor traced(const at::Tensor& x,
                  const at::Tensor& weight,
                  const at::Tensor& bias,
                  const ConvOptions& options) {
  const at::ScalarType type = type_for(x);
  const auto in = [&](at::ScalarType own, const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(own) : tensor;
  };
  const auto is_as_given = [&] {
    const at::tracer::impl::NoTracerDispatchMode untraced;
    return cpu::computes_as_given(in(type, x), in(type, weight), in(type, bias), options);
  };
  if (!x.is_cpu() || !at::isReducedFloatingType(type) || is_as_given())
    return by_torch(x, weight, bias, options);
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
  return by_torch(in(at::kFloat, x), in(at::kFloat, weight), in(at::kFloat, bias), options)
      .to(type);
}

}  // namespace

at::Tensor convolution(const at::Tensor& given_x,
                       const at::Tensor& given_weight,
                       const at::Tensor& given_bias,
                       const ConvOptions& options) {
  expect_fitting(given_x, given_weight, given_bias, options);
  if (torch::jit::tracer::isTracing()) return traced(given_x, given_weight, given_bias, options);
  if (!given_x.is_cpu()) return by_torch(given_x, given_weight, given_bias, options);
  ProfiledOperation record("cytra::convolution", {given_x, given_weight, options.transposed});
  const at::ScalarType type = type_for(given_x);
  const bool is_autocast = at::autocast::is_autocast_enabled(at::kCPU);
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
  const auto in_its_type = [&](const at::Tensor& tensor) {
    return is_autocast && tensor.defined() ? at::autocast::cached_cast(type, tensor, at::kCPU)
                                           : tensor;
  };
  for (const at::Tensor& parameter : {given_weight, given_bias}) {
    TORCH_CHECK(
        is_autocast || !parameter.defined() || parameter.scalar_type() == given_x.scalar_type(),
        "expected weights and a bias of the image's type, ",
        given_x.scalar_type(),
        ", not ",
        parameter.scalar_type());
  }
  const at::Tensor x = in_its_type(given_x);
  const bool is_read_as_given = cpu::uses_winograd(x, given_weight, options);
  const at::Tensor weight = is_read_as_given ? given_weight : in_its_type(given_weight),
                   bias = is_read_as_given || !given_bias.defined()
                              ? given_bias
                              : in_its_type(given_bias).contiguous();
  const bool needs_grad =
      at::GradMode::is_enabled() &&
      (x.requires_grad() || weight.requires_grad() || (bias.defined() && bias.requires_grad()));
  at::Tensor y;
  if (needs_grad) {
    y = ConvFunction::apply(
        x, weight, bias.defined() ? std::optional(bias) : std::nullopt, options);
  } else {
    y = cpu::convolution(x, weight, bias, options);
  }
  record.end(y);
  return y;
}

}  // namespace cytra::ops
