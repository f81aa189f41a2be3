#pragma once
// Focal loss: cross-entropy that weights voxels by how wrong they are.
#include "nn/losses/channels.h"

namespace cytra::nn {

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
  at::Tensor compute(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask) const;
};

}  // namespace cytra::nn
