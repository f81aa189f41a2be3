#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::metrics {

/// Mean Dice over images and classes, 2 |P and T| / (|P| + |T|), and each class's own. Source:
/// monai.metrics.DiceMetric with reduction "mean" and "mean_batch". Classes that an image's truth
/// does not have are left out of its mean, or count as 1 when also predicted empty, else 0, with
/// ignore_empty = false. Of several processes, the sum of all sums() is the whole.
class Dice {
 public:
  /// `channels`: K; without the background the first of several is left out.
  explicit Dice(int64_t channels, bool include_background = true, bool ignore_empty = true);
  /// prediction, truth: (N,K,[D,]H,W), one-hot or binary: 0 and 1 in any type. Nothing here waits
  /// for a GPU: values other than 0 and 1 are noticed by what is computed from them. Throws:
  /// DataError for other shapes.
  void update(const at::Tensor& prediction, const at::Tensor& truth);
  /// The mean over images of the mean over classes; NaN when nothing was counted. Throws: DataError
  /// when values other than 0 and 1 were given, as class numbers or probabilities are.
  double compute() const;
  /// Of each channel (NaN for the background that is left out): the mean over the images that have
  /// it. Throws: as compute().
  std::vector<double> per_class() const;
  /// How many images there were, and how many of them have any foreground, or each channel.
  struct Counts {
    int64_t images = 0, with_foreground = 0;
    std::vector<int64_t> with_class;
  };
  Counts counts() const;
  void reset();
  /// What it counts, (K + 2, 2) double: of the mean and of each channel the sum of Dice and the
  /// number of images; the number of images, and of values other than 0 and 1.
  const at::Tensor& sums() const { return sums_; }

 private:
  int64_t channels_, first_;
  bool ignore_empty_;
  at::Tensor sums_;
};

}  // namespace cytra::metrics
