#include "nn/loss.h"

#include <ATen/ATen.h>

namespace cytra::nn {
namespace {

/// Every s-th voxel of a target, so that it gets the level's size; as nearest interpolation does.
at::Tensor sampled_down(const at::Tensor& target, at::IntArrayRef sizes) {
  const at::IntArrayRef size = sizes.slice(2);
  if (target.sizes().slice(2) == size) return target;
  return size.size() == 2 ? at::upsample_nearest2d(target, size)
                          : at::upsample_nearest3d(target, size);
}

}  // namespace

at::Tensor Loss::operator()(const at::Tensor& logits,
                            const at::Tensor& target,
                            const at::Tensor& mask) const {
  if (!ignore_index_) return compute(logits, target, mask);
  const at::Tensor is_ignored = target.eq(*ignore_index_);  // (N,1 or K,...)
  const at::Tensor counts = is_ignored.any(1, /*keepdim=*/true).logical_not();
  return compute(logits,
                 target.masked_fill(is_ignored, 0),
                 mask.defined() ? counts.to(mask.scalar_type()) * mask : counts);
}

at::Tensor Loss::of_levels(const std::vector<at::Tensor>& levels, const at::Tensor& target) const {
  at::Tensor sum;
  double weight = 1, total = 0;
  for (std::size_t l = 0; l < levels.size(); ++l, weight /= 2) {
    if (l > 0 && l + 1 == levels.size()) break;
    const at::Tensor loss = weight * (*this)(levels[l], sampled_down(target, levels[l].sizes()));
    sum = sum.defined() ? sum + loss : loss;
    total += weight;
  }
  return sum / total;
}

}  // namespace cytra::nn
