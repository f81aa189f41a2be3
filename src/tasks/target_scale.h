#pragma once
#include <ATen/core/Tensor.h>

#include "config/node.h"

namespace cytra::tasks {

/// The scale in which a regression learns its targets, by channel: to mean 0 and deviation 1. A
/// RegressionDecoder's options, `mean` and `std`, hold it and scale predictions back.
class TargetScale {
 public:
  /// None, so that targets are learned as they are, where the decoder's options have no `mean`.
  explicit TargetScale(const config::Node& decoder);
  /// Writes it into a decoder's options. Shape: (C) float64 each; a deviation of 0 becomes 1.
  static void write(const at::Tensor& mean, const at::Tensor& deviation, config::Node& decoder);
  bool is_there() const { return mean_.defined(); }
  /// Shape: target (N,C,...) float32 -> the same.
  at::Tensor scaled(const at::Tensor& target) const;

 private:
  mutable at::Tensor mean_, std_;  // on the device of the newest target
};

}  // namespace cytra::tasks
