#include "ops/conv/onednn.h"

#include <algorithm>

#if defined(__x86_64__)  // the table of kernels is as long as in torch's own library
#define HAVE_AVX2_CPU_DEFINITION
#define HAVE_AVX512_CPU_DEFINITION
#endif
#include <ATen/ATen.h>
#include <ATen/native/ConvUtils.h>

#include "ops/conv/winograd/winograd.h"

namespace cytra::ops::cpu {
namespace {

bool is_unrolled(const at::Tensor& input, const at::Tensor& weight, const ConvOptions& options) {
  using Backend = at::native::ConvBackend;
  if (input.scalar_type() != at::kFloat || weight.scalar_type() != at::kFloat || input.dim() < 4 ||
      options.groups != 1 || !at::hasMKLDNN() || !at::globalContext().userEnabledMkldnn())
    return false;
  const auto symbolic = c10::fromIntArrayRefSlow;
  switch (at::native::select_conv_backend(input,
                                          weight,
                                          std::nullopt,
                                          symbolic(options.stride),
                                          symbolic(options.padding),
                                          symbolic(options.dilation),
                                          options.transposed,
                                          symbolic(options.output_padding),
                                          options.groups,
                                          std::nullopt)) {
    case Backend::NnpackSpatial:
    case Backend::Slow2d:
    case Backend::Slow3d:
    case Backend::SlowDilated2d:
    case Backend::SlowDilated3d:
      return true;
    default:
      return false;
  }
}

at::MemoryFormat format_of(const at::Tensor& input, const at::Tensor& weight) {
  if (!at::native::mkldnn_conv_use_channels_last(input, weight))
    return at::MemoryFormat::Contiguous;
  return input.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

}  // namespace

/// Whether the convolution makes a few columns at a stride (a transposed convolution does that
/// backwards), or has groups of one channel with several outputs each. Options that torch refuses
/// are left to torch.
bool is_wrong_in_half(at::ScalarType type,
                      const at::Tensor& input,
                      const at::Tensor& weight,
                      const ConvOptions& options) {
  if (!at::isReducedFloatingType(type) || input.dim() < 3 || weight.dim() != input.dim() ||
      options.stride.empty() || options.padding.empty() || options.dilation.empty())
    return false;
  if (options.groups > 1 && weight.size(1) == 1 && weight.size(0) > options.groups) return true;
  const int64_t stride = options.stride.back();
  if (stride < 2) return false;
  const int64_t reach = options.dilation.back() * (weight.size(-1) - 1),
                padded = input.size(-1) + 2 * options.padding.back(),
                width = options.transposed ? input.size(-1) : (padded - reach - 1) / stride + 1;
  return width <= std::max<int64_t>(2, stride / 3);
}

at::Tensor convolution(const at::Tensor& input,
                       const at::Tensor& weight,
                       const at::Tensor& bias,
                       const ConvOptions& options) {
  if (uses_winograd(input, weight, options)) return winograd(input, weight, bias, options);
  const auto& [stride, padding, dilation, transposed, output_padding, groups, kept] = options;
  const at::ScalarType type = input.scalar_type(),
                       own = !transposed &&
                                     is_wrong_in_half(input.scalar_type(), input, weight, options)
                                 ? at::kFloat
                                 : type;
  const at::Tensor x = input.to(own), w = own == type ? weight : weight.to(own),
                   b = own == type || !bias.defined() ? bias : bias.to(own);
  if (!is_unrolled(x, w, options)) {
    return at::convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups)
        .to(type);
  }
  const at::MemoryFormat format = format_of(x, w);
  return at::mkldnn_convolution(
             x.contiguous(format), w.contiguous(format), b, padding, stride, dilation, groups)
      .to(type);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad,
                                                                    const at::Tensor& input,
                                                                    const at::Tensor& weight,
                                                                    const ConvOptions& options,
                                                                    std::array<bool, 3> needs) {
  const auto& [stride, padding, dilation, transposed, output_padding, groups, kept] = options;
  const bool is_wrong = is_wrong_in_half(input.scalar_type(), input, weight, options);
  // torch 2.11 takes a gradient of one channel, which fits both layouts, for channels last.
  const bool is_mistaken = grad.size(1) == 1 && !input.is_contiguous();
  if (needs[0] && transposed && (is_wrong || is_mistaken)) {
    std::tuple<at::Tensor, at::Tensor, at::Tensor> all;
    if (needs[1] || needs[2])
      all = convolution_backward(grad, input, weight, options, {false, needs[1], needs[2]});
    const auto as_meant = [&](const at::Tensor& tensor) {
      return tensor.to(is_wrong ? at::kFloat : tensor.scalar_type()).contiguous();
    };
    const auto exact = convolution_backward(
        as_meant(grad), as_meant(input), as_meant(weight), options, {true, false, false});
    std::get<0>(all) =
        std::get<0>(exact).to(input.scalar_type()).contiguous(input.suggest_memory_format());
    return all;
  }
  if (!is_unrolled(input, weight, options)) {
    const std::array<int64_t, 1> channels{grad.size(1)};
    return at::convolution_backward(grad,
                                    input,
                                    weight,
                                    at::OptionalIntArrayRef(at::IntArrayRef(channels)),
                                    stride,
                                    padding,
                                    dilation,
                                    transposed,
                                    output_padding,
                                    groups,
                                    needs);
  }
  const at::MemoryFormat format = format_of(input, weight);
  return at::native::mkldnn_convolution_backward_stub(at::kCPU,
                                                      input.contiguous(format),
                                                      grad.contiguous(format),
                                                      weight.contiguous(format),
                                                      padding,
                                                      stride,
                                                      dilation,
                                                      groups,
                                                      needs);
}

}  // namespace cytra::ops::cpu
