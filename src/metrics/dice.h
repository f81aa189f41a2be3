#pragma once
#include <ATen/core/Tensor.h>

namespace cytra::metrics {

/// Mean Dice over images and classes: 2 |P and T| / (|P| + |T|). Source:
/// monai.metrics.DiceMetric(reduction="mean").
class Dice {
 public:
  explicit Dice(bool include_background = true, bool ignore_empty = true)
      : include_background_(include_background), ignore_empty_(ignore_empty) {}
  /// prediction, truth: (N,K,[D,]H,W), one-hot or binary (values 0 and 1).
  void update(const at::Tensor& prediction, const at::Tensor& truth);
  /// The mean over images of the mean over classes; NaN when nothing was counted. Classes empty in
  /// the truth are left out, or count as 1 when also predicted empty, else 0, with ignore_empty =
  /// false.
  double compute() const;
  void reset() { sum_ = images_ = 0; }

 private:
  bool include_background_, ignore_empty_;
  double sum_ = 0, images_ = 0;
};

}  // namespace cytra::metrics
