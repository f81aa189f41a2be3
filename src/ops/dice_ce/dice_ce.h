#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// What Dice, Tversky and cross-entropy are made of: sums over the voxels that count.
struct ClassSums {
  at::Tensor both;           // (N,K) of the probability where the truth is, times that
  at::Tensor prediction;     // (N,K) of the probability, or of its square
  at::Tensor truth;          // (N,K)
  at::Tensor cross_entropy;  // (N) of all classes; of masks the binary one of all channels
};

/// Whether class_sums() has a kernel for these: dense float32 on a CPU, or on a GPU with
/// libcytra_cuda.so; the logits may also be bfloat16 and float16, which it reads directly. Not in
/// a trace.
bool has_class_sums(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& mask);

/// The sums, float32, in one pass over the logits; their gradient, in the logits' type, takes
/// another pass. Neither probabilities nor a channel per class are kept. Differentiable once, by
/// the logits. The result is the same for any number of threads. Shape: logits (N,K,[D,]H,W),
/// channels-first or -last; `is_exclusive`: target (N,1,...) of class numbers (softmax), else
/// (N,K,...) (a logistic function per channel); mask (N,1,...) of 0 and 1, or undefined. Throws:
/// DataError for a number that is no class; on a GPU that is the device's error, at the next wait.
ClassSums class_sums(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask,
                     bool is_exclusive,
                     bool squared);

}  // namespace cytra::ops
