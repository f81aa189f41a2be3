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
  template <class V>
  void visit(V& v) {
    DiceLoss::visit(v);
    v("multilabel",
      multilabel,
      "channels are masks of their own: binary cross-entropy of each; null: as the task says");
    v("label_smoothing", label_smoothing, "of the cross-entropy over several channels", 0, 1);
    v("lambda_dice", lambda_dice, "weight of the Dice part", 0, 1e9);
    v("lambda_ce", lambda_ce, "weight of the cross-entropy", 0, 1e9);
  }
  void check() const {
    DiceLoss::check();
    if (multilabel.value_or(false) && (softmax.value_or(false) || to_onehot_y.value_or(false)))
      throw ConfigError("multilabel goes with sigmoid, not softmax or to_onehot_y");
  }
  at::Tensor compute(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask) const {
    CrossEntropyLoss ce;
    ce.reduction = reduction;
    ce.weight = weight;
    ce.multilabel = multilabel;
    ce.label_smoothing = label_smoothing;
    DiceLoss dice = *this;
    // The weights are of all classes here, of those that count there.
    if (!include_background && weight.size() > 1) dice.weight.erase(dice.weight.begin());
    return lambda_dice * dice.compute(logits, target, mask) +
           lambda_ce * ce.compute(logits, target, mask);
  }
};
CYTRA_REGISTER(Loss, LossOf<DiceCELoss>, "DiceCELoss");

}  // namespace
}  // namespace cytra::nn
