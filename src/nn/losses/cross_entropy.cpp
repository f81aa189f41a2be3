// CrossEntropyLoss: arguments and values of torch.nn.CrossEntropyLoss; of one channel, and of
// masks, those of torch.nn.BCEWithLogitsLoss (weight: its pos_weight).
#include "nn/losses/cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

#include "config/registry.h"

namespace cytra::nn {

CrossEntropyLoss::Voxels CrossEntropyLoss::voxels(const LossInput& in) const {
  const auto& [logits, target, mask] = in;
  const int64_t classes = logits.size(1);
  at::Tensor weights;  // (K,1,1), or (1,1,1)
  if (!weight.empty()) weights = per_channel(weight, logits, "weight");
  if (multilabel.value_or(false) || classes == 1) {
    const at::Tensor truth = truth_of(in);
    return {at::binary_cross_entropy_with_logits(logits, truth, {}, weights, at::Reduction::None),
            {}};
  }
  if (weights.defined()) weights = weights.flatten().expand({classes}).contiguous();
  const bool has_numbers = target.size(1) == 1;
  const at::Tensor numbers = has_numbers ? target.squeeze(1).to(at::kLong) : at::Tensor();
  // CUDA has no deterministic kernel for targets that are class numbers.
  const bool as_numbers = has_numbers && !at::globalContext().deterministicAlgorithms();
  const at::Tensor truth = as_numbers ? numbers : truth_of(in, has_numbers);
  const at::Tensor values =
      at::cross_entropy_loss(logits, truth, weights, at::Reduction::None, -100, label_smoothing);
  const bool is_weighted = has_numbers && weights.defined();
  return {values.unsqueeze(1), is_weighted ? weights.index({numbers}).unsqueeze(1) : at::Tensor()};
}

at::Tensor CrossEntropyLoss::compute(const LossInput& in) const {
  const auto [values, weights] = voxels(in);
  const at::Tensor& mask = in.mask;
  if (!weights.defined() || reduction == "sum") return reduced(values, mask);
  // The values are weighted already, and their mean is a weighted one.
  const at::Tensor counts = mask.defined() ? weights * mask : weights;
  const at::Tensor total = counts.sum();
  const at::Tensor sum = (mask.defined() ? values * mask : values).sum();
  return sum / at::where(total > 0, total, at::ones_like(total));
}

namespace {
CYTRA_REGISTER(Loss, LossOf<CrossEntropyLoss>, "CrossEntropyLoss");
}

}  // namespace cytra::nn
