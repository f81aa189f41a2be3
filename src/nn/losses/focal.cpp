// FocalLoss, cross-entropy that weights voxels by how wrong they are, and DiceFocalLoss: arguments
// and values of monai.losses'. (FocalLoss's mean is over the voxels that count and the channels. In
// MONAI's mean with ignore_index the loss is multiplied by the number of channels.) Source:
// arXiv:1708.02002.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/dice.h"

namespace cytra::nn {
namespace {

/// (N,K,...) -> of each voxel and channel, before weights.
at::Tensor focal_of_classes(const at::Tensor& logits, const at::Tensor& truth, double gamma) {
  const at::Tensor log_p = at::log_softmax(logits, 1);
  return -(1 - log_p.exp()).pow(gamma) * log_p * truth;
}

at::Tensor focal_of_masks(const at::Tensor& logits, const at::Tensor& truth, double gamma) {
  const at::Tensor cross_entropy = logits - logits * truth - at::log_sigmoid(logits);
  const at::Tensor log_wrong = at::log_sigmoid(-logits * (truth * 2 - 1));
  return (log_wrong * gamma).exp() * cross_entropy;
}

struct FocalLoss : ReducedOptions {
  static constexpr const char* kPurpose = kMasks.what;
  bool include_background = true, use_softmax = false;
  std::optional<bool> to_onehot_y;
  double gamma = 2;
  std::vector<double> alpha, weight;
  void visit(auto& v) {
    v("include_background", include_background, "count channel 0, too, where there are more");
    v("to_onehot_y", to_onehot_y, "target holds class numbers; null: as the task says, else no");
    v("gamma", gamma, "power of how wrong a voxel is; 0: cross-entropy", 0, 100);
    v("alpha", alpha, "share of the foreground, or a number per class that counts; null: 1", 0, 1);
    v("weight", weight, "weight of each class that counts", 0, 1e9);
    v("use_softmax", use_softmax, "classes that exclude each other; false: a mask per channel");
    ReducedOptions::visit(v);
  }
  at::Tensor compute(const LossInput& in) const {
    const at::Tensor truth = truth_of(in, to_onehot_y.value_or(false));
    const at::Tensor x = counted_channels(in.logits, include_background);
    const at::Tensor t = counted_channels(truth, include_background);
    at::Tensor values = use_softmax ? focal_of_classes(x, t, gamma) : focal_of_masks(x, t, gamma);
    if (alpha.size() > 1) {
      const at::Tensor a = per_channel(alpha, values, "alpha");
      values = values * (use_softmax ? a : at::where(t == 1, a, at::ones_like(a)));
    } else if (!alpha.empty() && !use_softmax) {
      values = values * (t * alpha[0] + (1 - t) * (1 - alpha[0]));
    } else if (!alpha.empty() && include_background) {
      // The background may be any of the remaining classes: it is not known which.
      std::vector<double> of_class(static_cast<std::size_t>(t.size(1)), alpha[0]);
      of_class[0] = 1 - alpha[0];
      values = values * per_channel(of_class, values, "alpha");
    }
    if (!weight.empty()) values = values * per_channel(weight, values, "weight");
    return reduction == "mean" ? reduced(values, in.mask) : voxel_means(values, in.mask).sum();
  }
};
CYTRA_REGISTER(Loss, LossOf<FocalLoss>, "FocalLoss");

struct DiceFocalLoss : DiceLoss {
  double gamma = 2, lambda_dice = 1, lambda_focal = 1;
  std::vector<double> alpha;
  void visit(auto& v) {
    DiceLoss::visit(v);
    v("gamma", gamma, "power of how wrong a voxel is; 0: cross-entropy", 0, 100);
    v("alpha", alpha, "for the focal part: share of the foreground; null: 1", 0, 1);
    v("lambda_dice", lambda_dice, "weight of the Dice part", 0, 1e9);
    v("lambda_focal", lambda_focal, "weight of the focal part", 0, 1e9);
  }
  at::Tensor compute(const LossInput& in) const {
    FocalLoss focal;
    focal.include_background = include_background;
    focal.to_onehot_y = to_onehot_y;
    focal.gamma = gamma;
    focal.alpha = alpha;
    focal.weight = weight;
    focal.reduction = reduction;
    return lambda_dice * DiceLoss::compute(in) +
           lambda_focal * focal.compute({at_least_float(in.logits), in.target, in.mask});
  }
};
CYTRA_REGISTER(Loss, LossOf<DiceFocalLoss>, "DiceFocalLoss");

}  // namespace
}  // namespace cytra::nn
