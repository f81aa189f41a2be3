#pragma once
// What the losses of instances share.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "nn/loss.h"

namespace cytra::nn {

/// Throws: DataError unless the target has the shape of the logits.
inline void expect_instance_target(const char* loss,
                                   const at::Tensor& logits,
                                   const at::Tensor& target) {
  if (target.sizes() == logits.sizes()) return;
  throw DataError("{}: a target of ({}), the model gives ({}); InstanceTask makes it",
                  loss,
                  fmt::join(target.sizes(), ","),
                  fmt::join(logits.sizes(), ","));
}

/// 1 where voxels count, (N,1,...): `mask` allows it, and the target's probability is not -1, which
/// stands for "not known".
inline at::Tensor counts_of(const at::Tensor& probability, const at::Tensor& mask) {
  const at::Tensor counts = probability.ge(0).to(probability.scalar_type());
  return mask.defined() ? counts * mask : counts;
}

}  // namespace cytra::nn
