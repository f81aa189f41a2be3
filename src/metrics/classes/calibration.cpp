// MulticlassCalibrationError: how far the probability of the class that is found lies from the
// share of images of which it is the true one. Source: torchmetrics.classification
// MulticlassCalibrationError, and with multilabel BinaryCalibrationError of all labels; Guo et al.
// 2017, arXiv:1706.04599.
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/metric.h"

namespace cytra::metrics {
namespace {

/// The sums are by bin: images, the sum of their probabilities, and how many were right.
class CalibrationError final : public SumsMetric {
 public:
  struct Options {
    int64_t n_bins = 15;
    std::string norm = "l1";
    std::optional<bool> multilabel;
    void visit(auto& v) {
      v("n_bins", n_bins, "ranges of equal width that probabilities fall into", 1, 10000);
      v("norm",
        norm,
        "of the bins' differences: l1: their mean by the number of images (the expected "
        "calibration error); l2: its root mean square; max: the largest",
        {"l1", "l2", "max"});
      v("multilabel", multilabel, "labels do not exclude each other; null: as the task says");
    }
  };
  explicit CalibrationError(const Options& options)
      : SumsMetric({options.n_bins + 1, 3}), options_(options) {}
  Input input() const override { return Input::probabilities; }
  void update(const Compared& batch) override {
    check_shapes("calibration_error", batch);
    at::Tensor probability = batch.prediction.to(at::kDouble), is = batch.truth.to(at::kDouble);
    if (!options_.multilabel.value_or(false) && is.size(1) > 1) {
      const auto [largest, found] = probability.max(1, /*keepdim=*/true);
      probability = largest;
      is = is.gather(1, found);
    }
    const at::Tensor counts = batch.mask.defined()
                                  ? batch.mask.to(at::kDouble).expand_as(is).flatten()
                                  : at::ones_like(is).flatten();
    probability = probability.flatten();
    // A probability of 1 has a bin of its own, as torch.bucketize gives it.
    // NaN, which no bin has, makes the first one's sum NaN.
    const at::Tensor bin =
        (probability * options_.n_bins).nan_to_num(0).floor().clamp(0, options_.n_bins);
    if (sums_.device() != is.device()) sums_ = sums_.to(is.device());
    sums_.index_add_(
        0, bin.to(at::kLong), at::stack({counts, counts * probability, counts * is.flatten()}, 1));
  }
  std::map<std::string, double> compute() const override {
    const at::Tensor sums = sums_.cpu();
    const at::Tensor images = sums.select(1, 0);
    const double all = images.sum().item<double>();
    if (all == 0) return {{"calibration_error", std::nan("")}};
    const at::Tensor gap = (sums.select(1, 1) - sums.select(1, 2)).abs();  // times the images
    double error = (gap.sum() / all).item<double>();
    if (options_.norm == "l2")
      error = std::sqrt((gap.square() / images.clamp_min(1)).sum().item<double>() / all);
    if (options_.norm == "max") error = (gap / images.clamp_min(1)).max().item<double>();
    return {{"calibration_error", error}};
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Metric, CalibrationError, "MulticlassCalibrationError");

}  // namespace
}  // namespace cytra::metrics
