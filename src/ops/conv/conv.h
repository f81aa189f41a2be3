// The convolutions of our own layers: right and fast on a CPU in shapes where torch 2.11's are not
// (conv/onednn.h, conv/backward.h). torch's operations are left as they are.
#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// One number for each spatial dimension.
struct ConvOptions {
  at::IntArrayRef stride, padding, dilation;
  bool transposed;
  at::IntArrayRef output_padding;  // of a transposed one
  int64_t groups;
};

/// torch.nn.functional.conv2d, conv3d, conv_transpose2d and conv_transpose3d, also under autocast.
/// On a CPU differentiable once; in a trace, and on other devices, torch's own operations, in a
/// trace of a CPU's in float32 where they would be wrong.
/// Shape: x (N,C,[D,]H,W), weight (K,C/groups,[d,]h,w), transposed (C,K/groups,[d,]h,w), bias (K)
/// or undefined -> (N,K,[D',]H',W').
/// Throws: c10::Error for shapes and options that do not fit; std::logic_error for a second
/// derivative on a CPU.
at::Tensor convolution(const at::Tensor& x,
                       const at::Tensor& weight,
                       const at::Tensor& bias,
                       const ConvOptions& options);

}  // namespace cytra::ops
