// The convolutions of our own layers: right and fast on a CPU in shapes where torch 2.11's are not
// (conv/onednn.h, conv/backward.h). torch's own operations are not changed.
#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// One number for each spatial dimension.
struct ConvOptions {
  at::IntArrayRef stride, padding, dilation;
  bool transposed;
  at::IntArrayRef output_padding;  // of a transposed one
  int64_t groups;
  /// Whether the weight is a module's own parameter: a network that is only run then keeps what is
  /// prepared of it (conv/constant_weights.h).
  bool is_parameter = false;
};

/// torch.nn.functional.conv2d, conv3d, conv_transpose2d and conv_transpose3d, also under autocast.
/// On a CPU differentiable once. In a trace, and on other devices, these are torch's own
/// operations. Half precision on a CPU computes in float32 and rounds, in a trace, too, but for
/// shapes that oneDNN was seen to compute right (conv/half_check.h).
/// Shape: x (N,C,[D,]H,W), weight (K,C/groups,[d,]h,w), transposed (C,K/groups,[d,]h,w), bias (K)
/// or undefined -> (N,K,[D',]H',W').
/// Throws: c10::Error for shapes and options that do not fit; std::logic_error for a second
/// derivative on a CPU.
at::Tensor convolution(const at::Tensor& x,
                       const at::Tensor& weight,
                       const at::Tensor& bias,
                       const ConvOptions& options);

}  // namespace cytra::ops
