// MSEMetric, RMSEMetric, MAEMetric, PSNRMetric: differences of intensities. Source:
// monai.metrics.regression.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/values/value_metric.h"

namespace cytra::metrics {
namespace {

enum class Error { mse, rmse, mae };

template <Error kind>
class ErrorMetric final : public ValueMetric {
 public:
  struct Options {
    void visit(auto&) {}
  };
  explicit ErrorMetric(const Options& /*options*/)
      : ValueMetric(kind == Error::mse    ? "mse"
                    : kind == Error::rmse ? "rmse"
                                          : "mae") {}

 private:
  Values measure(const Compared& batch) const override {
    const at::Tensor difference = batch.prediction - batch.truth, number = number_of(batch);
    const at::Tensor each = kind == Error::mae ? difference.abs() : difference.square();
    const at::Tensor mean = sum_of(each, batch.mask) / number;
    return {kind == Error::rmse ? mean.sqrt() : mean, number.gt(0)};
  }
};
CYTRA_REGISTER(Metric, ErrorMetric<Error::mse>, "MSEMetric");
CYTRA_REGISTER(Metric, ErrorMetric<Error::rmse>, "RMSEMetric");
CYTRA_REGISTER(Metric, ErrorMetric<Error::mae>, "MAEMetric");

/// 10 log10(max_val^2 / MSE), in dB; infinite for an image that is predicted exactly.
class PsnrMetric final : public ValueMetric {
 public:
  struct Options {
    std::optional<double> max_val;
    void visit(auto& v) {
      v("max_val", max_val, "range of the values; null: that of each true image", 1e-300, 1e300);
    }
  };
  explicit PsnrMetric(const Options& options) : ValueMetric("psnr"), max_val_(options.max_val) {}

 private:
  Values measure(const Compared& batch) const override {
    const at::Tensor number = number_of(batch);
    const at::Tensor mse = sum_of((batch.prediction - batch.truth).square(), batch.mask) / number;
    const at::Tensor range = max_val_ ? at::full_like(mse, *max_val_) : range_of(batch);
    return {10 * at::log10(range.square() / mse), number.gt(0).logical_and(range.gt(0))};
  }
  std::optional<double> max_val_;
};
CYTRA_REGISTER(Metric, PsnrMetric, "PSNRMetric");

}  // namespace
}  // namespace cytra::metrics
