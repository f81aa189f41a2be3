// DiceCELoss: Dice plus cross-entropy. Arguments and values of monai.losses.DiceCELoss,
// `multilabel` apart: MONAI's cross-entropy over several channels is always that of classes which
// exclude each other.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/losses/cross_entropy.h"
#include "nn/losses/dice.h"

namespace cytra::nn {
namespace {

struct DiceCELoss : DiceLoss {
  std::optional<bool> multilabel;
  double lambda_dice = 1, lambda_ce = 1, label_smoothing = 0;
  void visit(auto& v) {
    DiceLoss::visit(v);
    v("multilabel",
      multilabel,
      "channels are masks of their own: binary cross-entropy of each; null: as the task says");
    v("label_smoothing",
      label_smoothing,
      "class weights of the cross-entropy over several channels",
      0,
      1);
    v("lambda_dice", lambda_dice, "weight of the Dice part", 0, 1e9);
    v("lambda_ce", lambda_ce, "weight of the cross-entropy", 0, 1e9);
  }
  void check() const {
    DiceLoss::check();
    if (multilabel.value_or(false) && (softmax.value_or(false) || to_onehot_y.value_or(false)))
      throw ConfigError("multilabel goes with sigmoid, not softmax or to_onehot_y");
  }
  at::Tensor compute(const LossInput& in) const {
    DiceLoss dice = *this;
    // The cross-entropy's weights are for all classes, Dice's for those that count.
    if (!include_background && weight.size() > 1) dice.weight.erase(dice.weight.begin());
    const Overlap sums = overlap(in, squared_pred);
    return lambda_dice * dice.of_overlap(sums) + lambda_ce * cross_entropy(sums, in);
  }

 private:
  at::Tensor cross_entropy(const Overlap& sums, const LossInput& in) const {
    const auto& [logits, target, mask] = in;
    const int64_t channels = logits.size(1);
    const bool is_masks = multilabel.value_or(false) || channels == 1;
    const bool is_summed = sums.cross_entropy.defined() && is_masks != is_exclusive(logits);
    if (!is_summed || !weight.empty() || label_smoothing > 0) {
      CrossEntropyLoss loss;
      loss.reduction = reduction;
      loss.weight = weight;
      loss.multilabel = multilabel;
      loss.label_smoothing = label_smoothing;
      return loss.compute({at_least_float(logits), target, mask});
    }
    const at::Tensor sum = sums.cross_entropy.sum();
    if (reduction == "sum") return sum;
    const int64_t values = is_masks ? channels : 1;  // of a voxel
    return mask.defined() ? sum / (mask.sum() * values).clamp_min(1)
                          : sum * channels / (logits.numel() * values);
  }
};
CYTRA_REGISTER(Loss, LossOf<DiceCELoss>, "DiceCELoss");

}  // namespace
}  // namespace cytra::nn
