#pragma once
// What metrics of intensities share: a number for every image, and their mean.
#include "metrics/metric.h"

namespace cytra::metrics {

/// The mean over images, by sums of their numbers and of how many there are. Source:
/// monai.metrics.regression.RegressionMetric, reduction "mean".
class ValueMetric : public SumsMetric {
 public:
  explicit ValueMetric(std::string name) : SumsMetric({2}), name_(std::move(name)) {}
  Input input() const final { return Input::values; }
  void update(const Compared& batch) final;
  std::map<std::string, double> compute() const final;

 protected:
  /// (N) double, and whether each counts.
  struct Values {
    at::Tensor values, counts;
  };
  virtual Values measure(const Compared& batch) const = 0;

 private:
  std::string name_;
};

/// Sums over each image's voxels that count: (N,C,[D,]H,W) -> (N) double; and their number.
at::Tensor sum_of(const at::Tensor& values, const at::Tensor& mask);
at::Tensor number_of(const Compared& batch);
/// The range of each image's true values that count, (N) double.
at::Tensor range_of(const Compared& batch);

}  // namespace cytra::metrics
