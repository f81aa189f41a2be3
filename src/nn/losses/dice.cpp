// DiceLoss: arguments and values of monai.losses.DiceLoss.
#include "nn/losses/dice.h"

#include <ATen/ATen.h>

#include "config/registry.h"

namespace cytra::nn {

Overlap OverlapOptions::overlap(const at::Tensor& logits,
                                const at::Tensor& target,
                                const at::Tensor& mask,
                                bool squared) const {
  const auto [p, t] = channels(logits, target, mask);
  std::vector<int64_t> dims;
  for (int64_t d = 2; d < p.dim(); ++d) dims.push_back(d);
  const auto sum = [&](const at::Tensor& values) {
    const at::Tensor of_images = values.sum(dims);
    return batch ? of_images.sum(0, /*keepdim=*/true) : of_images;
  };
  Overlap sums{{}, sum(squared ? p.square() : p), sum(squared ? t.square() : t)};
  // Of products a fraction that is met overlaps by less than itself.
  const bool is_difference = soft_label && !squared;
  sums.both = is_difference ? (sums.prediction + sums.truth - sum((p - t).abs())) / 2 : sum(p * t);
  return sums;
}

at::Tensor DiceLoss::compute(const at::Tensor& logits,
                             const at::Tensor& target,
                             const at::Tensor& mask) const {
  return of_overlap(overlap(logits, target, mask, squared_pred));
}

at::Tensor DiceLoss::of_overlap(const Overlap& sums) const {
  const at::Tensor total = sums.prediction + sums.truth;
  const at::Tensor denominator = jaccard ? 2 * (total - sums.both) : total;
  at::Tensor losses = 1 - (2 * sums.both + smooth_nr) / (denominator + smooth_dr);
  if (!weight.empty() && losses.size(1) > 1)
    losses = losses * per_channel(weight, losses, "weight");
  return reduced(losses);
}

namespace {
CYTRA_REGISTER(Loss, LossOf<DiceLoss>, "DiceLoss", "MaskedDiceLoss");
}

}  // namespace cytra::nn
