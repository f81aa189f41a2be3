#pragma once
// The passes over memory of instance_norm_leaky_relu on a CPU; no autograd here.
#include <ATen/core/Tensor.h>

namespace cytra::ops::cpu {

/// Whether these functions take the tensors: float32, dense, channels-first or channels-last.
bool is_supported(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

struct Normalized {
  at::Tensor output;
  at::Tensor statistics;  // (N,C,2) float64: mean and 1 / standard deviation
};

/// Shape: x (N,C,[D,]H,W), weight (C), bias (C) -> output like x.
Normalized instance_norm(const at::Tensor& x,
                         const at::Tensor& weight,
                         const at::Tensor& bias,
                         double eps,
                         double slope);

struct Kept {
  at::Tensor tensor;  // the input; the output when `is_output`
  bool is_output;
  at::Tensor weight, bias, statistics;
  double slope;
};

struct Gradients {
  at::Tensor x, weight, bias;
};

/// Shape: grad like the output. Gradients::x stays undefined unless `needs_x`.
Gradients instance_norm_backward(const Kept& kept, const at::Tensor& grad, bool needs_x);

}  // namespace cytra::ops::cpu
