// torch's convolution_backward on a CPU, so of every convolution, transposed or not: the weight's
// gradient by a kernel of ours where it is faster, all else as before.
#include <algorithm>
#include <array>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/ops/convolution_backward_compositeexplicitautograd_dispatch.h>
#include <torch/library.h>

#include "ops/conv_weight_grad.h"

namespace cytra::ops {
namespace {

using Tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of input, weight and bias

Tensors convolution_backward(const at::Tensor& grad,
                             const at::Tensor& input,
                             const at::Tensor& weight,
                             at::OptionalIntArrayRef bias_sizes,
                             at::IntArrayRef stride,
                             at::IntArrayRef padding,
                             at::IntArrayRef dilation,
                             bool transposed,
                             at::IntArrayRef output_padding,
                             int64_t groups,
                             std::array<bool, 3> needs) {
  const auto torchs = [&](const at::Tensor& dy, std::array<bool, 3> mask) {
    return at::compositeexplicitautograd::convolution_backward(dy,
                                                               input,
                                                               weight,
                                                               bias_sizes,
                                                               stride,
                                                               padding,
                                                               dilation,
                                                               transposed,
                                                               output_padding,
                                                               groups,
                                                               mask);
  };
  const auto is_one = [](int64_t d) { return d == 1; };
  // A transposed convolution is one backwards.
  const at::Tensor &image = transposed ? grad : input, &output = transposed ? input : grad;
  const cpu::ConvForm form{weight.sizes().slice(2), stride, padding};
  if (!needs[1] || groups != 1 || !std::all_of(dilation.begin(), dilation.end(), is_one) ||
      !cpu::has_conv_weight_grad(image, output, form))
    return torchs(grad, needs);

  const at::Tensor dy = grad.contiguous(input.suggest_memory_format());
  at::Tensor of_input, of_bias;
  if (needs[0]) of_input = std::get<0>(torchs(dy, {true, false, false}));
  if (needs[2]) of_bias = at::sum(dy.flatten(2), at::IntArrayRef{0, 2});
  const at::Tensor of_weight = cpu::conv_weight_grad(
      transposed ? dy : input, transposed ? input : dy, form, weight.suggest_memory_format());
  return {of_input, of_weight, of_bias};
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("convolution_backward", TORCH_FN(convolution_backward));
}

}  // namespace
}  // namespace cytra::ops
