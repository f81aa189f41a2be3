#pragma once
// Normalisations with the activation that follows them in one operation.
// Source: torch.nn.functional.{instance,group,batch,layer}_norm, with their numbers; differentiable
// once.
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// What follows a norm. An activation with its own parameters (PReLU) is not supported.
struct Activation {
  enum Kind { kNone, kRelu, kLeakyRelu, kGelu, kSilu, kElu };
  Kind kind = kNone;
  double slope = 0.01;  // of a leaky ReLU: its negative slope; of an ELU: its alpha
};

/// The activation alone. Shape: any.
at::Tensor activate(const at::Tensor& x, const Activation& activation);

// The affine map's `weight` and `bias` have shape (C); both undefined: there is none. The output
// has the shape, type and memory format of `x`, (N,C,[D,]H,W), and must not be changed in place
// before the backward pass: it may be kept for it. An `x` that is moved in and whose memory nothing
// else holds becomes the output where no gradient is needed (on a CPU).
// Throws: c10::Error when the shapes do not fit; as torch's, DataError with a remedy where a mean
// would be of one value.

at::Tensor instance_norm(at::Tensor x,
                         const at::Tensor& weight,
                         const at::Tensor& bias,
                         double eps,
                         const Activation& activation = {});

/// `groups` divides C.
at::Tensor group_norm(at::Tensor x,
                      int64_t groups,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      double eps,
                      const Activation& activation = {});

/// What a batch norm remembers. Undefined tensors: nothing, so that every batch is normalised by
/// itself.
struct RunningStatistics {
  at::Tensor mean, variance;  // (C); training changes them in place
  double momentum = 0.1;
};

/// Normalises, while `training`, by the batch's mean and variance; else by the running ones.
at::Tensor batch_norm(at::Tensor x,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      const RunningStatistics& running,
                      bool training,
                      double eps,
                      const Activation& activation = {});

/// Normalises over the last dimensions. Shape: x (...,normalized_shape), weight and bias
/// (normalized_shape).
at::Tensor layer_norm(const at::Tensor& x,
                      at::IntArrayRef normalized_shape,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      double eps,
                      const Activation& activation = {});

/// Throws: DataError with the remedy where a norm of that name has one value for each mean of `x`,
/// whose variance is unknown. Source: torch.nn.functional's checks.
void expect_several(const at::Tensor& x, int64_t values, const char* norm);

}  // namespace cytra::ops
