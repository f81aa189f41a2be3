// Convolutions on a CPU by oneDNN where torch unrolls the image for a matrix product: one image of
// few values, as the deep layers of 3D networks have; in float32 where oneDNN's half precision is
// wrong. torch's convolutions are these from then on; measured: docs/benchmarks.md, "One image".
#pragma once
#include <array>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace cytra::ops::cpu {

/// As at::convolution has them.
struct ConvOptions {
  at::IntArrayRef stride, padding, dilation;
  bool transposed;
  at::IntArrayRef output_padding;
  int64_t groups;
};

/// at::convolution_backward of tensors on a CPU: gradients of input, weight and bias, those of
/// `needs` alone.
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& weight,
    at::OptionalIntArrayRef bias_sizes,
    const ConvOptions& options,
    std::array<bool, 3> needs);

}  // namespace cytra::ops::cpu
