#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// at::conv3d. A kernel of one voxel is a matrix product over the channels when these come last:
/// ATen copies the image as for a larger kernel there (slow_conv3d), three times the time.
/// Shape: x (N,C,D,H,W), weight (K,C/groups,d,h,w), bias (K) or undefined -> (N,K,D',H',W').
at::Tensor conv3d(const at::Tensor& x,
                  const at::Tensor& weight,
                  const at::Tensor& bias,
                  at::IntArrayRef stride,
                  at::IntArrayRef padding,
                  at::IntArrayRef dilation,
                  int64_t groups);

}  // namespace cytra::ops
