// DiceFocalLoss: Dice plus focal loss. Arguments and values of monai.losses.DiceFocalLoss.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/dice.h"
#include "nn/losses/focal.h"

namespace cytra::nn {
namespace {

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
  at::Tensor compute(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask) const {
    FocalLoss focal;
    focal.include_background = include_background;
    focal.to_onehot_y = to_onehot_y;
    focal.gamma = gamma;
    focal.alpha = alpha;
    focal.weight = weight;
    focal.reduction = reduction;
    return lambda_dice * DiceLoss::compute(logits, target, mask) +
           lambda_focal * focal.compute(at_least_float(logits), target, mask);
  }
};
CYTRA_REGISTER(Loss, LossOf<DiceFocalLoss>, "DiceFocalLoss");

}  // namespace
}  // namespace cytra::nn
