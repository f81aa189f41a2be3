#pragma once
// Losses of how much a prediction and the truth overlap, and Dice's, which others add to.
#include "nn/losses/channels.h"

namespace cytra::nn {

/// Sums over the voxels of an image, or of the batch: (N or 1,K).
struct Overlap {
  at::Tensor both;               // of the product: true positives
  at::Tensor prediction, truth;  // of each
  /// (N), of all channels, masks too, before weights; undefined where the sums have no kernel.
  at::Tensor cross_entropy;
};

struct OverlapOptions : ChannelOptions {
  static constexpr bool kTakesShort = true;
  bool batch = false, soft_label = false;
  double smooth_nr = 1e-5, smooth_dr = 1e-5;
  void visit(auto& v) {
    ChannelOptions::visit(v);
    v("batch", batch, "sums over the batch instead of over each image");
    v("soft_label", soft_label, "the target holds fractions: the loss is 0 where it is predicted");
    v("smooth_nr", smooth_nr, "added to the numerator", 0, 1e9);
    v("smooth_dr", smooth_dr, "added to the denominator", 0, 1e9);
  }
  /// Channels are classes that exclude each other.
  bool is_exclusive(const at::Tensor& logits) const;
  /// The overlap in the channels and voxels that count. `squared`: sums of the squares of each.
  Overlap overlap(const LossInput& in, bool squared = false) const;
};

struct DiceLoss : OverlapOptions {
  bool squared_pred = false, jaccard = false;
  std::vector<double> weight;
  void visit(auto& v) {
    OverlapOptions::visit(v);
    v("squared_pred", squared_pred, "squares in the denominator");
    v("jaccard", jaccard, "Jaccard instead of Dice");
    v("weight", weight, "weight of each class that counts", 0, 1e9);
  }
  at::Tensor compute(const LossInput& in) const;
  at::Tensor of_overlap(const Overlap& overlap) const;
};

}  // namespace cytra::nn
