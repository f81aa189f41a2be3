#pragma once
// Instance and group norm of ops/norm/norm.h on a GPU, by the kernels of libcytra_cuda.so; the
// interface is that of ops/norm/cpu.h. Batch norm uses cuDNN, which takes channels first and last.
#include "ops/norm/cpu.h"

namespace cytra::ops::gpu {

/// Whether these functions take the tensors: float32, bfloat16 or float16, dense, channels-first or
/// channels-last, on a GPU; weight and bias floating, or both undefined. Never in a build without
/// the kernels.
bool is_supported(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// Statistics are on the device. The input is kept, not the output: whether the output would do
/// depends on the weights' values, for which the host would have to wait.
cpu::Normalized normalize(const at::Tensor& x,
                          const at::Tensor& weight,
                          const at::Tensor& bias,
                          const cpu::NormForm& form);
cpu::Gradients normalize_backward(const cpu::SavedForBackward& saved,
                                  const at::Tensor& grad,
                                  bool needs_x);

}  // namespace cytra::ops::gpu
