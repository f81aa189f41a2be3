#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::metrics {

/// Mean Dice over images and classes: 2 |P and T| / (|P| + |T|). Source:
/// monai.metrics.DiceMetric(reduction="mean").
class Dice {
 public:
  explicit Dice(bool include_background = true, bool ignore_empty = true);
  /// Nothing here waits for a GPU. prediction, truth: (N,K,[D,]H,W), one-hot or binary (values 0
  /// and 1).
  void update(const at::Tensor& prediction, const at::Tensor& truth);
  /// The mean over images of the mean over classes; NaN when nothing was counted. Classes empty in
  /// the truth are left out, or count as 1 when also predicted empty, else 0, with ignore_empty =
  /// false.
  double compute() const;
  void reset();
  /// What it counts, (2) double: the sum over images, and their number. Of several processes the
  /// sum of all is the whole.
  const at::Tensor& sums() const { return sums_; }

 private:
  bool include_background_, ignore_empty_;
  at::Tensor sums_;
};

}  // namespace cytra::metrics
