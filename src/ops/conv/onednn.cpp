#include "ops/conv/onednn.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#if defined(__x86_64__)  // the table of kernels is as long as in torch's own library
#define HAVE_AVX2_CPU_DEFINITION
#define HAVE_AVX512_CPU_DEFINITION
#endif
#include <ATen/ATen.h>
#include <ATen/native/ConvUtils.h>

#include "ops/conv/half_check.h"
#include "ops/conv/winograd/winograd.h"

namespace cytra::ops::cpu {
namespace {

using Backend = at::native::ConvBackend;

Backend backend_of(const at::Tensor& input, const at::Tensor& weight, const ConvOptions& options) {
  const auto symbolic = c10::fromIntArrayRefSlow;
  return at::native::select_conv_backend(input,
                                         weight,
                                         std::nullopt,
                                         symbolic(options.stride),
                                         symbolic(options.padding),
                                         symbolic(options.dilation),
                                         options.transposed,
                                         symbolic(options.output_padding),
                                         options.groups,
                                         std::nullopt);
}

bool is_unrolled(const at::Tensor& input, const at::Tensor& weight, const ConvOptions& options) {
  if (input.scalar_type() != at::kFloat || weight.scalar_type() != at::kFloat || input.dim() < 4 ||
      options.groups != 1 || !at::hasMKLDNN() || !at::globalContext().userEnabledMkldnn())
    return false;
  switch (backend_of(input, weight, options)) {
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

/// Whether a convolution in half precision may be worth it: float32 takes no notable time for few
/// products, and short rows, large strides and several outputs of one channel are what oneDNN
/// computes wrong, with writes beyond its tensors.
bool is_worth_half(const at::Tensor& input, const at::Tensor& weight, const ConvOptions& options) {
  constexpr int64_t kFewestProducts = 1 << 22, kShortestRow = 8, kLargestStride = 4;
  const std::size_t dims = options.stride.size();
  if (input.dim() != weight.dim() || input.dim() != static_cast<int64_t>(dims) + 2 || dims < 2 ||
      options.padding.size() != dims || options.dilation.size() != dims || input.numel() == 0 ||
      weight.numel() == 0)
    return false;
  double products = static_cast<double>(input.size(0) * weight.numel());
  int64_t shortest = input.size(-1);
  for (std::size_t d = 0; d < dims; ++d) {
    const auto axis = static_cast<int64_t>(d) + 2;
    const int64_t stride = options.stride[d], padding = options.padding[d],
                  reach = options.dilation[d] * (weight.size(axis) - 1), side = input.size(axis);
    if (stride < 1 || stride > kLargestStride) return false;
    const int64_t out = options.transposed ? (side - 1) * stride - 2 * padding + reach + 1
                                           : (side + 2 * padding - reach - 1) / stride + 1;
    products *= static_cast<double>(options.transposed ? side : out);
    if (d + 1 == dims) shortest = std::min(shortest, out);
  }
  return shortest >= kShortestRow && products >= kFewestProducts &&
         (options.groups == 1 || (weight.size(1) == 1 && weight.size(0) == options.groups));
}

/// Whether `result`, number `pass` of a convolution's, is right for the tensors.
bool is_right(int64_t pass,
              const at::Tensor& input,
              const at::Tensor& weight,
              const ConvOptions& options,
              const std::vector<at::Tensor>& tensors,
              const ConvResult& result) {
  if (!at::isReducedFloatingType(input.scalar_type())) return true;
  if (!is_worth_half(input, weight, options)) return false;
  const Backend backend = backend_of(input, weight, options);
  if (backend != Backend::Mkldnn && backend != Backend::MkldnnTranspose) return false;  // slower
  std::vector<int64_t> key{pass, options.transposed ? 1 : 0, options.groups};
  for (const at::IntArrayRef numbers :
       {options.stride, options.padding, options.dilation, options.output_padding})
    key.insert(key.end(), numbers.begin(), numbers.end());
  return is_right_in_half(tensors, std::move(key), result);
}

/// Computes in the given type, or in float32 with a result that is rounded.
at::Tensor computed(bool as_given, std::vector<at::Tensor> tensors, const ConvResult& result) {
  if (as_given) return result.compute(tensors);
  const at::ScalarType type = tensors[0].scalar_type();
  for (at::Tensor& tensor : tensors) tensor = tensor.to(at::kFloat);
  return result.compute(tensors).to(type);
}

/// Tensors of one convolution, laid out as torch's call of oneDNN lays them out.
std::vector<at::Tensor> laid_out(std::vector<at::Tensor> tensors, at::MemoryFormat format) {
  for (at::Tensor& tensor : tensors)
    if (tensor.dim() > 1) tensor = tensor.contiguous(format);
  return tensors;
}

/// Shape: tensors are input, weight and, with one, bias.
ConvResult forward_of(const ConvOptions& options) {
  return {[options](const std::vector<at::Tensor>& tensors) {
    const auto& [stride, padding, dilation, transposed, output_padding, groups, kept] = options;
    const at::Tensor &x = tensors[0], &w = tensors[1],
                     b = tensors.size() > 2 ? tensors[2] : at::Tensor();
    if (!is_unrolled(x, w, options))
      return at::convolution(
          x, w, b, stride, padding, dilation, transposed, output_padding, groups);
    const at::MemoryFormat format = format_of(x, w);
    return at::mkldnn_convolution(
        x.contiguous(format), w.contiguous(format), b, padding, stride, dilation, groups);
  }};
}

std::vector<at::Tensor> forward_tensors(const at::Tensor& input,
                                        const at::Tensor& weight,
                                        const at::Tensor& bias) {
  std::vector<at::Tensor> tensors{input, weight};
  if (bias.defined()) tensors.push_back(bias);
  return at::isReducedFloatingType(input.scalar_type())
             ? laid_out(std::move(tensors), format_of(input, weight))
             : tensors;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_as_given(const at::Tensor& grad,
                                                                 const at::Tensor& input,
                                                                 const at::Tensor& weight,
                                                                 const ConvOptions& options,
                                                                 std::array<bool, 3> needs) {
  const auto& [stride, padding, dilation, transposed, output_padding, groups, kept] = options;
  // torch 2.11 takes a gradient of one channel, which fits both layouts, for channels last.
  if (needs[0] && transposed && grad.size(1) == 1 && !input.is_contiguous()) {
    std::tuple<at::Tensor, at::Tensor, at::Tensor> all;
    if (needs[1] || needs[2])
      all = backward_as_given(grad, input, weight, options, {false, needs[1], needs[2]});
    const auto exact = backward_as_given(
        grad.contiguous(), input.contiguous(), weight.contiguous(), options, {true, false, false});
    std::get<0>(all) = std::get<0>(exact).contiguous(input.suggest_memory_format());
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

}  // namespace

bool computes_as_given(const at::Tensor& input,
                       const at::Tensor& weight,
                       const at::Tensor& bias,
                       const ConvOptions& options) {
  return is_right(
      0, input, weight, options, forward_tensors(input, weight, bias), forward_of(options));
}

at::Tensor convolution(const at::Tensor& input,
                       const at::Tensor& weight,
                       const at::Tensor& bias,
                       const ConvOptions& options) {
  if (uses_winograd(input, weight, options)) return winograd(input, weight, bias, options);
  const auto tensors = forward_tensors(input, weight, bias);
  const ConvResult result = forward_of(options);
  return computed(is_right(0, input, weight, options, tensors, result), tensors, result);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad,
                                                                    const at::Tensor& input,
                                                                    const at::Tensor& weight,
                                                                    const ConvOptions& options,
                                                                    std::array<bool, 3> needs) {
  if (!at::isReducedFloatingType(input.scalar_type()))
    return backward_as_given(grad, input, weight, options, needs);
  const auto tensors = laid_out({grad, input, weight}, format_of(input, weight));
  const auto gradient = [&](int64_t pass) {
    const bool of_weight = pass == 2;
    const ConvResult result{
        [&options, of_weight](const std::vector<at::Tensor>& given) {
          const auto all = backward_as_given(
              given[0], given[1], given[2], options, {!of_weight, of_weight, false});
          return of_weight ? std::get<1>(all) : std::get<0>(all);
        },
        /*of_images=*/2,
        /*is_sum=*/of_weight,
        /*unread=*/of_weight ? std::size_t{2} : std::size_t{1}};
    return computed(is_right(pass, input, weight, options, tensors, result), tensors, result);
  };
  return {needs[0] ? gradient(1) : at::Tensor(),
          needs[1] ? gradient(2) : at::Tensor(),
          needs[2] ? at::sum(grad.flatten(2), at::IntArrayRef{0, 2}) : at::Tensor()};
}

}  // namespace cytra::ops::cpu
