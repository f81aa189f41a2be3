// Convolutions on a CPU by oneDNN where torch unrolls the image for a matrix product: one image of
// few values, as the deep layers of 3D networks have; in float32 where oneDNN's half precision is
// wrong. Measured: docs/benchmarks.md, "One image".
#pragma once
#include <array>
#include <tuple>

#include <ATen/core/Tensor.h>

#include "ops/conv/conv.h"

namespace cytra::ops::cpu {

/// Whether oneDNN's convolution (not a transposed one) of tensors of this type computes wrong
/// values, and reads and writes beyond its tensors (torch 2.11, AVX512_BF16).
bool is_wrong_in_half(at::ScalarType type,
                      const at::Tensor& input,
                      const at::Tensor& weight,
                      const ConvOptions& options);

/// at::convolution of tensors on a CPU. Shape: as ops::convolution().
at::Tensor convolution(const at::Tensor& input,
                       const at::Tensor& weight,
                       const at::Tensor& bias,
                       const ConvOptions& options);

/// at::convolution_backward of tensors on a CPU: gradients of input, weight and bias, only those
/// that `needs` names.
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad,
                                                                    const at::Tensor& input,
                                                                    const at::Tensor& weight,
                                                                    const ConvOptions& options,
                                                                    std::array<bool, 3> needs);

}  // namespace cytra::ops::cpu
