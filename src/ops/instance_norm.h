#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Instance normalisation, the affine map and a leaky ReLU in one operation; differentiable once.
/// Dense float32 tensors on a CPU, channels-first or channels-last, take kernels of our own, and so
/// do bfloat16 and float16 without gradients; any other input, and a trace, takes at::instance_norm
/// and at::leaky_relu. The output has the memory
/// format of `x`. A `negative_slope` of 1 means no activation; with any other, the output may be
/// kept for the backward pass and must not be changed in place before it.
/// Shape: x (N,C,[D,]H,W), weight (C), bias (C) -> (N,C,[D,]H,W).
/// Throws: c10::Error when the shapes do not fit; std::logic_error for a second derivative.
/// Source: torch.nn.functional.instance_norm (population variance), torch.nn.functional.leaky_relu;
/// what the backward pass keeps: In-Place Activated BatchNorm, arXiv:1712.02616.
at::Tensor instance_norm_leaky_relu(const at::Tensor& x,
                                    const at::Tensor& weight,
                                    const at::Tensor& bias,
                                    double eps,
                                    double negative_slope);

}  // namespace cytra::ops
