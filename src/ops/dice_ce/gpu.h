#pragma once
// class_sums() of ops/dice_ce/dice_ce.h on a GPU, by kernels of libcytra_cuda.so.
#include "ops/dice_ce/dice_ce.h"

namespace cytra::ops::gpu {

/// Whether the library with the kernels for this device is there.
bool has_class_kernels(c10::Device device);

/// Computes ops::class_sums(), whose conditions must hold, without autograd. A number that is no
/// class ends the kernel: the next wait for the GPU throws.
ClassSums class_sums(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask,
                     bool is_exclusive,
                     bool squared);

/// The gradient of the logits from those of the sums (`truth` has none); an undefined one is 0.
at::Tensor class_sums_backward(const at::Tensor& logits,
                               const at::Tensor& target,
                               const at::Tensor& mask,
                               bool is_exclusive,
                               bool squared,
                               const ClassSums& grads);

}  // namespace cytra::ops::gpu
