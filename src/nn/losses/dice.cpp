// DiceLoss: arguments and values of monai.losses.DiceLoss.
#include "nn/losses/dice.h"

#include <ATen/ATen.h>

#include "config/registry.h"
#include "ops/dice_ce/dice_ce.h"

namespace cytra::nn {

Overlap OverlapOptions::overlap(const LossInput& in, bool squared) const {
  const auto& [logits, target, mask] = in;
  const auto of_images_or_batch = [this](const at::Tensor& of_images) {
    return batch ? of_images.sum(0, /*keepdim=*/true) : of_images;
  };
  // A product does not measure a soft label: a fraction that is predicted exactly overlaps by less
  // than itself.
  const bool is_difference = soft_label && !squared;
  const bool exclusive = is_exclusive(logits);
  const bool fits = exclusive ? to_onehot_y.value_or(false) && target.size(1) == 1
                              : sigmoid.value_or(false) && target.sizes() == logits.sizes();
  if (fits && !is_difference && ops::has_class_sums(logits, target, mask)) {
    const ops::ClassSums sums = ops::class_sums(logits, target, mask, exclusive, squared);
    const auto counted = [&](const at::Tensor& of_images) {
      return of_images_or_batch(counted_channels(of_images, include_background));
    };
    return {counted(sums.both), counted(sums.prediction), counted(sums.truth), sums.cross_entropy};
  }
  const auto [p, t] = channels({at_least_float(logits), target, mask});
  const auto sum = [&](const at::Tensor& values) {
    return of_images_or_batch(values.flatten(2).sum(2));
  };
  Overlap sums{{}, sum(squared ? p.square() : p), sum(squared ? t.square() : t), {}};
  sums.both = is_difference ? (sums.prediction + sums.truth - sum((p - t).abs())) / 2 : sum(p * t);
  return sums;
}

bool OverlapOptions::is_exclusive(const at::Tensor& logits) const {
  return softmax.value_or(false) && logits.size(1) > 1;
}

at::Tensor DiceLoss::compute(const LossInput& in) const {
  return of_overlap(overlap(in, squared_pred));
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
