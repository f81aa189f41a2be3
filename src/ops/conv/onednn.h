// Convolutions on a CPU by oneDNN where torch unrolls the image for a matrix product: one image of
// few values, as the deep layers of 3D networks have; in float32 inside where half precision by
// oneDNN is not known to be right (conv/half_check.h). Measured: docs/benchmarks.md, "One image".
#pragma once
#include <array>
#include <tuple>

#include <ATen/core/Tensor.h>

#include "ops/conv/conv.h"

namespace cytra::ops::cpu {

/// Whether convolution() computes in the tensors' own type, as torch does: for half precision only
/// where there is much to compute in rows of some length, and is_right_in_half(). Options that
/// torch refuses are left to torch.
bool computes_as_given(const at::Tensor& input,
                       const at::Tensor& weight,
                       const at::Tensor& bias,
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
