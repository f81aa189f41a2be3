#include "nn/loss.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace cytra::nn {
namespace {

/// The voxels of a target that are nearest to those of a coarser grid, whatever its type. Source:
/// torch.nn.functional.interpolate, mode nearest-exact.
at::Tensor sampled_down(at::Tensor target, at::IntArrayRef sizes) {
  for (int64_t d = 2; d < target.dim(); ++d) {
    const int64_t from = target.size(d), to = sizes[static_cast<std::size_t>(d)];
    if (from == to) continue;
    const at::Tensor centers = at::arange(to, target.options().dtype(at::kLong)) * 2 + 1;
    target = target.index_select(d, (centers * from).div(2 * to, "floor"));
  }
  return target;
}

}  // namespace

at::Tensor at_least_float(const at::Tensor& logits) {
  return logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
}

at::Tensor Loss::operator()(const at::Tensor& logits,
                            const at::Tensor& target,
                            const at::Tensor& mask) const {
  at::Tensor counts = mask, truth = target;
  if (ignore_index_) {
    const at::Tensor is_ignored = target.eq(*ignore_index_);  // (N,1 or K,...)
    truth = target.masked_fill(is_ignored, 0);
    counts = is_ignored.any(1, /*keepdim=*/true).logical_not();
    if (mask.defined()) counts = counts * mask;
  }
  const bool is_double = logits.scalar_type() == at::kDouble;
  if (counts.defined()) counts = counts.to(is_double ? at::kDouble : at::kFloat);
  return compute({takes_short_ ? logits : at_least_float(logits), truth, counts});
}

at::Tensor Loss::of_levels(const std::vector<at::Tensor>& levels, const at::Tensor& target) const {
  std::vector<double> weights(levels.size() > 2 ? levels.size() - 1 : levels.size());
  double total = 0;
  for (std::size_t l = 0; l < weights.size(); ++l) total += weights[l] = std::pow(0.5, l);
  for (double& weight : weights) weight /= total;
  return weighted_sum(levels, target, weights);
}

at::Tensor Loss::weighted_sum(const std::vector<at::Tensor>& levels,
                              const at::Tensor& target,
                              const std::vector<double>& weights) const {
  at::Tensor sum;
  for (std::size_t l = 0; l < std::min(levels.size(), weights.size()); ++l) {
    const at::Tensor loss =
        weights[l] * (*this)(levels[l], sampled_down(target, levels[l].sizes()));
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

}  // namespace cytra::nn
