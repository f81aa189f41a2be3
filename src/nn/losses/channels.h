#pragma once
// What losses of classes and masks share: MONAI's arguments, and how logits and a target become
// channels that can be compared. Source: monai.losses.
#include <string>
#include <vector>

#include "nn/loss.h"

namespace cytra::nn {

struct ReducedOptions : LossOptions {
  std::string reduction = "mean";
  void visit(auto& v) {
    v("reduction", reduction, "how all values become one", {"mean", "sum"});
    LossOptions::visit(v);
  }
  /// The mean or the sum of the values where `mask` is not 0; its channels and images repeat. The
  /// mean of none is 0. Without a mask all count.
  at::Tensor reduced(const at::Tensor& values, const at::Tensor& mask = {}) const;
};

/// (N,K,[D,]H,W) both, in the type of the logits.
struct Channels {
  at::Tensor prediction, truth;
};

struct ChannelOptions : ReducedOptions {
  static constexpr const char* kPurpose = kMasks.what;
  bool include_background = true;
  std::optional<bool> to_onehot_y, sigmoid, softmax;
  void visit(auto& v) {
    v("include_background", include_background, "count channel 0, too, where there are more");
    v("to_onehot_y", to_onehot_y, "target holds class numbers; null: as the task says, else no");
    v("sigmoid", sigmoid, "logits of a mask per channel; null: as the task says, else no");
    v("softmax", softmax, "logits of classes; null: as the task says, else no");
    ReducedOptions::visit(v);
  }
  void check() const;
  /// Probabilities and truth, without the background where it does not count; 0 where the mask is.
  /// Throws: DataError when the target does not fit.
  Channels channels(const LossInput& in) const;
};

/// Without channel 0, unless that counts or is the only one.
at::Tensor counted_channels(const at::Tensor& all, bool include_background);

/// The mean over an image's voxels that count, or over the batch's: (N,K,...) -> (N or 1,K); of
/// none 0.
at::Tensor voxel_means(const at::Tensor& values, const at::Tensor& mask, bool batch = false);

/// The target with a channel per class, as the logits have it: of class numbers when `is_numbers`
/// and there are several classes. Throws: DataError when it does not fit.
at::Tensor truth_of(const LossInput& in, bool is_numbers = false);

/// Numbers per channel for a product with `values` (N,K,...): (K,1,...); a single one is for all.
/// Throws: ConfigError, naming `key`, for another number of them.
at::Tensor per_channel(const std::vector<double>& numbers,
                       const at::Tensor& values,
                       const char* key);

}  // namespace cytra::nn
