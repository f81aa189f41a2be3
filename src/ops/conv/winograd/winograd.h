// Winograd's convolution on a CPU, by 4 (of planes) to 8 times fewer multiplications than there
// are in the sum that a convolution is: kernels of 3 pixels a side (a volume's may have no depth),
// a stride of 1, channels in multiples of 16. Its largest error in float32 is 1e-5 to 3e-5 of the
// output's root mean square; that of direct sums is 2e-6 to 7e-6. bfloat16 and float16 images are
// read and written as they are; all between is float32. Each value comes from its tile alone, so
// the number of threads and of samples changes no bit. Measured, and when it is chosen:
// docs/performance.md, "Winograd".
#pragma once
#include <ATen/core/Tensor.h>

#include "ops/conv/conv.h"

namespace cytra::ops::cpu {

/// Whether a convolution of such tensors, and its gradients, are computed here: where these
/// kernels can, as device::conv_algorithm() says; if that is automatic, where they take less time
/// by an estimate from the shapes alone, and never in a type for which the processor has matrix
/// units. The weight may be float32 beside a shorter x.
bool uses_winograd(const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options);

/// The multiplications that this thread's convolutions have been spared, by that estimate.
double spared_multiplications();

/// The convolution of tensors that uses_winograd() accepts, in the type of x.
/// Shape: x (N,C,[D,]H,W), weight (K,C,[d,]3,3), bias (K) or undefined -> (N,K,[D',]H',W') in x's
/// memory format.
at::Tensor winograd(const at::Tensor& x,
                    const at::Tensor& weight,
                    const at::Tensor& bias,
                    const ConvOptions& options);

/// The gradient of its input. Shape: grad (N,K,[D',]H',W') -> (N,C,[D,]H,W).
at::Tensor winograd_input_grad(const at::Tensor& grad,
                               const at::Tensor& weight,
                               at::IntArrayRef padding);

/// The gradient of its weight. Shape: x (N,C,[D,]H,W), grad (N,K,[D',]H',W') -> as `weight`, whose
/// values aren't read.
at::Tensor winograd_weight_grad(const at::Tensor& x,
                                const at::Tensor& grad,
                                const at::Tensor& weight,
                                at::IntArrayRef padding);

}  // namespace cytra::ops::cpu
