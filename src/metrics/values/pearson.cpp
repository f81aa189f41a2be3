// PearsonCorrCoef: linear correlation of intensities. Source: torchmetrics.PearsonCorrCoef, which
// pools the voxels of all images.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/values/value_metric.h"

namespace cytra::metrics {
namespace {

/// Of each image and channel: the number of voxels, the sums of x, y, x^2, y^2 and xy.
/// Shape: x, y (R,V) double, counts (R,V) bool -> (R,6).
at::Tensor moments_of(const at::Tensor& x, const at::Tensor& y, const at::Tensor& counts) {
  const auto sum = [&](const at::Tensor& values) { return at::where(counts, values, 0).sum(1); };
  return at::stack(
      {counts.sum(1).to(at::kDouble), sum(x), sum(y), sum(x * x), sum(y * y), sum(x * y)}, 1);
}

/// Values less their mean: of squares of raw intensities little variance may be left.
at::Tensor centred(const at::Tensor& values, const at::Tensor& counts) {
  return values - at::where(counts, values, 0).sum(1, true) / counts.sum(1, true);
}

at::Tensor correlation_of(const at::Tensor& moments) {
  const at::Tensor mean = moments / moments.slice(-1, 0, 1);
  const auto at = [&](int64_t i) { return mean.select(-1, i); };
  const at::Tensor covariance = at(5) - at(1) * at(2);
  const at::Tensor deviations = (at(3) - at(1).square()).sqrt() * (at(4) - at(2).square()).sqrt();
  return covariance / deviations;
}

class PearsonMetric final : public Metric {
 public:
  struct Options {
    bool by_image = false;
    template <class V>
    void visit(V& v) {
      v("by_image",
        by_image,
        "the mean of each image's and channel's own; false: of all voxels together");
    }
  };
  explicit PearsonMetric(const Options& options) : by_image_(options.by_image) {}
  Input input() const override { return Input::values; }

  void update(const Compared& batch) override {
    check_shapes("pearson", batch);
    const auto rows = [](const at::Tensor& values) { return values.flatten(2).flatten(0, 1); };
    const at::Tensor x = rows(batch.prediction.to(at::kDouble)),
                     y = rows(batch.truth.to(at::kDouble));
    const at::Tensor counts = batch.mask.defined() ? rows(batch.mask.ne(0).expand_as(batch.truth))
                                                   : at::ones_like(y, at::kBool);
    at::Tensor sums;
    if (by_image_) {
      const at::Tensor moments = moments_of(centred(x, counts), centred(y, counts), counts);
      // A flat truth has no correlation and does not count, a flat prediction has none: 0.
      const at::Tensor is_counted = moments.select(1, 4).gt(0);
      const at::Tensor value = at::where(moments.select(1, 3).eq(0), 0, correlation_of(moments));
      sums = at::stack({at::where(is_counted, value, 0).sum(), is_counted.sum().to(at::kDouble)});
    } else {
      sums = moments_of(x, y, counts).sum(0);
    }
    sums_ = sums_.to(sums.device()).add_(sums);
  }
  std::map<std::string, double> compute() const override {
    const at::Tensor value = by_image_ ? sums_[0] / sums_[1] : correlation_of(sums_);
    return {{"pearson", value.item<double>()}};
  }
  std::vector<at::Tensor> sums() override { return {sums_}; }
  void reset() override { sums_ = none(); }

 private:
  at::Tensor none() const { return at::zeros({by_image_ ? 2 : 6}, at::TensorOptions(at::kDouble)); }

  bool by_image_;
  at::Tensor sums_ = none();  // of the images' correlations, and how many; or moments
};
CYTRA_REGISTER(Metric, PearsonMetric, "PearsonCorrCoef");

}  // namespace
}  // namespace cytra::metrics
