// PearsonCorrCoef: linear correlation of intensities. Source: torchmetrics.PearsonCorrCoef, which
// pools the voxels of all images.
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ATen.h>

#include "base/log.h"
#include "config/registry.h"
#include "metrics/values/value_metric.h"

namespace cytra::metrics {
namespace {

/// The moments of each image and channel: the number of voxels, the sums of x, y, x^2, y^2 and xy.
/// Shape: x, y (R,V) double, counts (R,V) bool -> (R,6).
at::Tensor moments_of(const at::Tensor& x, const at::Tensor& y, const at::Tensor& counts) {
  const auto sum = [&](const at::Tensor& values) { return at::where(counts, values, 0).sum(1); };
  return at::stack(
      {counts.sum(1).to(at::kDouble), sum(x), sum(y), sum(x * x), sum(y * y), sum(x * y)}, 1);
}

/// Whether the values that count, (R,V), are all the same, exactly -> (R).
at::Tensor is_flat(const at::Tensor& values, const at::Tensor& counts) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return at::where(counts, values, kInfinity)
      .amin(1)
      .ge(at::where(counts, values, -kInfinity).amax(1));
}

/// The values minus their mean: the squares of raw intensities would leave few digits for the
/// variance.
at::Tensor centred(const at::Tensor& values, const at::Tensor& counts) {
  return values - at::where(counts, values, 0).sum(1, true) / counts.sum(1, true);
}

at::Tensor correlation_of(const at::Tensor& moments) {
  const at::Tensor mean = moments / moments.slice(-1, 0, 1);
  const auto at = [&](int64_t i) { return mean.select(-1, i); };
  const at::Tensor covariance = at(5) - at(1) * at(2);
  // A variance of a constant that only rounding makes counts as none: the result is NaN, as 0 / 0.
  constexpr double kRounding = 1e-12;
  const auto deviation = [&](const at::Tensor& squares, const at::Tensor& of) {
    const at::Tensor variance = squares - of.square();
    return at::where(variance.gt(kRounding * squares), variance, NAN).sqrt();
  };
  return (covariance / (deviation(at(3), at(1)) * deviation(at(4), at(2)))).clamp(-1, 1);
}

/// The sums are of correlations, of how many images, and of all; or moments.
class PearsonMetric final : public SumsMetric {
 public:
  struct Options {
    bool by_image = false;
    void visit(auto& v) {
      v("by_image",
        by_image,
        "the mean of the correlations of each image and channel; false: one correlation of all "
        "voxels");
    }
  };
  explicit PearsonMetric(const Options& options)
      : SumsMetric({options.by_image ? 3 : 6}), by_image_(options.by_image) {}
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
      const at::Tensor is_counted = is_flat(x, counts).logical_or(is_flat(y, counts)).logical_not();
      sums = at::stack({at::where(is_counted, correlation_of(moments), 0).sum(),
                        is_counted.sum().to(at::kDouble),
                        at::scalar_tensor(x.size(0), x.options())});
    } else {
      sums = moments_of(x, y, counts).sum(0);
    }
    add(sums);
  }
  std::map<std::string, double> compute() const override {
    if (!by_image_) return {{"pearson", correlation_of(sums_).item<double>()}};
    const at::Tensor host = sums_.cpu();
    const double* sums = host.const_data_ptr<double>();
    if (sums[1] < sums[2] && !std::exchange(has_told_, true)) {
      log::warn(
          "pearson: {:.0f} of {:.0f} images (of each channel) are constant in the truth or the "
          "prediction: they have no correlation and do not count",
          sums[2] - sums[1],
          sums[2]);
    }
    return {{"pearson", sums[1] > 0 ? sums[0] / sums[1] : std::nan("")}};
  }

 private:
  bool by_image_;
  mutable bool has_told_ = false;
};
CYTRA_REGISTER(Metric, PearsonMetric, "PearsonCorrCoef");

}  // namespace
}  // namespace cytra::metrics
