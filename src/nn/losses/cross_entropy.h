#pragma once
// Cross-entropy: of classes that exclude each other, or of masks, a channel each.
#include "nn/losses/channels.h"

namespace cytra::nn {

struct CrossEntropyLoss : ReducedOptions {
  static constexpr const char* kPurpose = kMasks.what;
  std::vector<double> weight;
  std::optional<bool> multilabel;
  double label_smoothing = 0;
  void visit(auto& v) {
    v("weight", weight, "weight of each class; for masks: of the voxels in them", 0, 1e9);
    v("label_smoothing", label_smoothing, "share of a target that all classes get", 0, 1);
    v("multilabel",
      multilabel,
      "channels are masks of their own: binary cross-entropy of each; null: as the task says");
    ReducedOptions::visit(v);
  }
  at::Tensor compute(const LossInput& in) const;

  struct Voxels {
    at::Tensor values;   // (N,1,[D,]H,W), of masks (N,K,[D,]H,W)
    at::Tensor weights;  // (N,1,[D,]H,W): what each counts in a mean; undefined: 1
  };
  /// One channel is a mask, too. A target of several channels holds the probability of each class.
  Voxels voxels(const LossInput& in) const;
};

}  // namespace cytra::nn
