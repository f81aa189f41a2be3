#pragma once
// The norms of ops/norm/norm.h on a CPU, forward and backward, by kernels of our own.
#include <ATen/core/Tensor.h>

namespace cytra::ops::cpu {

/// Which values share a mean and a variance: those of C / groups channels of a sample, or, across
/// the batch, those of a channel (groups is C then).
struct NormForm {
  int64_t groups;
  bool across_batch;
  double eps;
  double slope;  // of the leaky ReLU after it; 1: none
};

/// Whether these functions take the tensors: float32, bfloat16 or float16, dense, channels-first or
/// channels-last; weight and bias float32 or of the type of `x`, or both undefined.
bool is_supported(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

struct Normalized {
  at::Tensor output;
  at::Tensor statistics;    // (shares,2) float64: mean and population variance
  at::Tensor coefficients;  // of a GPU: (N C,6) float32, which its backward pass reads and writes
};

/// Normalises by the statistics of `x`, or by `fixed` ones; with `in_place` in the memory of `x`.
/// Shape: x (N,C,[D,]H,W), weight and bias (C) float32, fixed (shares,2) -> output like x.
Normalized normalize(const at::Tensor& x,
                     const at::Tensor& weight,
                     const at::Tensor& bias,
                     const NormForm& form,
                     const at::Tensor& fixed,
                     bool in_place = false);

struct SavedForBackward {
  at::Tensor tensor;  // the input; the output when `is_output`
  bool is_output, is_fixed;
  at::Tensor weight, bias, statistics, coefficients;
  NormForm form;
};

struct Gradients {
  at::Tensor x, weight, bias;
};

/// Shape: grad like the output. Gradients::x stays undefined unless `needs_x`.
Gradients normalize_backward(const SavedForBackward& saved, const at::Tensor& grad, bool needs_x);

}  // namespace cytra::ops::cpu
