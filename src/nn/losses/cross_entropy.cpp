// CrossEntropyLoss: arguments and values of torch.nn.CrossEntropyLoss; of one channel, and of
// masks, those of torch.nn.BCEWithLogitsLoss.
#include "nn/losses/cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

#include "config/registry.h"

namespace cytra::nn {

VoxelCrossEntropy cross_entropy(const at::Tensor& logits,
                                const at::Tensor& target,
                                bool is_masks,
                                const std::vector<double>& weight,
                                double label_smoothing) {
  const bool is_binary = is_masks || logits.size(1) == 1;
  at::Tensor weights;  // (K,1,1), or (1,1,1)
  if (!weight.empty()) weights = per_channel(weight, logits, "weight");
  if (is_binary) {
    return {at::binary_cross_entropy_with_logits(
        logits, truth_of(target, logits, false), {}, weights, at::Reduction::None)};
  }
  if (weights.defined()) weights = weights.flatten().expand({logits.size(1)}).contiguous();
  const bool has_numbers = target.size(1) == 1;
  const at::Tensor numbers = has_numbers ? target.squeeze(1).to(at::kLong) : at::Tensor();
  // With class numbers CUDA has no deterministic kernel.
  const bool as_numbers = has_numbers && !at::globalContext().deterministicAlgorithms();
  const at::Tensor classes = as_numbers ? numbers : truth_of(target, logits, has_numbers);
  return {
      at::cross_entropy_loss(logits, classes, weights, at::Reduction::None, -100, label_smoothing),
      has_numbers && weights.defined() ? weights.index({numbers}) : at::Tensor()};
}

at::Tensor CrossEntropyLoss::compute(const at::Tensor& logits,
                                     const at::Tensor& target,
                                     const at::Tensor& mask) const {
  const auto [values, weights] =
      cross_entropy(logits, target, multilabel.value_or(false), weight, label_smoothing);
  const at::Tensor voxels = mask.defined() && values.dim() < mask.dim() ? mask.squeeze(1) : mask;
  if (!weights.defined() || reduction == "sum") return reduced(values, voxels);
  // The mean is weighted, as the values are.
  if (!voxels.defined()) return values.sum() / weights.sum();
  const at::Tensor total = (weights * voxels).sum();
  return (values * voxels).sum() / at::where(total > 0, total, 1);
}

namespace {
CYTRA_REGISTER(Loss, LossOf<CrossEntropyLoss>, "CrossEntropyLoss");
}

}  // namespace cytra::nn
