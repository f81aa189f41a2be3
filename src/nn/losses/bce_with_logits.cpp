// BCEWithLogitsLoss: cross-entropy of masks, a channel each. Arguments and values of
// torch.nn.BCEWithLogitsLoss; weights are of channels. Class numbers become a mask per class.
#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

#include "config/registry.h"
#include "nn/losses/channels.h"

namespace cytra::nn {
namespace {

struct BCEWithLogitsLoss : ReducedOptions {
  static constexpr const char* kPurpose = kMasks.what;
  std::vector<double> weight, pos_weight;
  std::optional<bool> to_onehot_y;
  void visit(auto& v) {
    v("weight", weight, "weight of each channel", 0, 1e9);
    v("pos_weight", pos_weight, "weight of the voxels in each channel's mask", 0, 1e9);
    v("to_onehot_y", to_onehot_y, "target holds class numbers; null: as the task says, else no");
    ReducedOptions::visit(v);
  }
  at::Tensor compute(const LossInput& in) const {
    const auto weights = [&](const std::vector<double>& numbers, const char* key) {
      return numbers.empty() ? at::Tensor() : per_channel(numbers, in.logits, key);
    };
    return reduced(at::binary_cross_entropy_with_logits(in.logits,
                                                        truth_of(in, to_onehot_y.value_or(false)),
                                                        weights(weight, "weight"),
                                                        weights(pos_weight, "pos_weight"),
                                                        at::Reduction::None),
                   in.mask);
  }
};
CYTRA_REGISTER(Loss, LossOf<BCEWithLogitsLoss>, "BCEWithLogitsLoss");

}  // namespace
}  // namespace cytra::nn
