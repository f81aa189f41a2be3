// FocalLoss: arguments and values of monai.losses.FocalLoss. (The mean is over the voxels that
// count and the channels. In MONAI's mean with ignore_index the loss is multiplied by the number
// of channels.)
// Source: arXiv:1708.02002.
#include "nn/losses/focal.h"

#include <ATen/ATen.h>

#include "config/registry.h"

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

}  // namespace

at::Tensor FocalLoss::compute(const at::Tensor& logits,
                              const at::Tensor& target,
                              const at::Tensor& mask) const {
  const at::Tensor truth = truth_of(target, logits, to_onehot_y.value_or(false));
  const at::Tensor x = counted_channels(logits, include_background);
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
  return reduction == "mean" ? reduced(values, mask) : voxel_means(values, mask).sum();
}

namespace {
CYTRA_REGISTER(Loss, LossOf<FocalLoss>, "FocalLoss");
}

}  // namespace cytra::nn
