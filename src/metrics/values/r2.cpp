// R2Score: the share of the variance of the true values that predictions explain. Source:
// torchmetrics.R2Score and sklearn.metrics.r2_score, which pool all images; uniform_average.
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "config/registry.h"
#include "metrics/values/value_metric.h"

namespace cytra::metrics {
namespace {

/// 1 - (sum of squared errors) / (sum of squared distances from the mean), of each channel, and
/// their mean.
class R2Metric final : public Metric {
 public:
  struct Options {
    void visit(auto& v) {
      v("multioutput", config::Unused{{"uniform_average"}}, "the mean and each value's are given");
    }
  };
  explicit R2Metric(const Options& /*options*/) {}
  Input input() const override { return Input::values; }
  void expect(int64_t channels) override { sums_ = at::zeros({channels, 4}, at::kDouble); }
  void update(const Compared& batch) override {
    check_shapes("r2", batch, sums_.defined() ? sums_.size(0) : 0);
    if (!sums_.defined()) expect(batch.truth.size(1));
    const at::Tensor truth = batch.truth.to(at::kDouble);
    const at::Tensor counts =
        batch.mask.defined() ? batch.mask.to(at::kDouble).expand_as(truth) : at::ones_like(truth);
    const auto sum = [&](const at::Tensor& values) {
      return (values * counts).transpose(0, 1).flatten(1).sum(1);
    };
    const at::Tensor error = (batch.prediction.to(at::kDouble) - truth).square();
    sums_ = sums_.to(truth.device())
                .add_(at::stack({sum(counts), sum(truth), sum(truth.square()), sum(error)}, 1));
  }
  std::map<std::string, double> compute() const override {
    if (!sums_.defined()) return {{"r2", std::nan("")}};
    const at::Tensor sums = sums_.cpu();
    const at::Tensor spread = sums.select(1, 2) - sums.select(1, 1).square() / sums.select(1, 0);
    const at::Tensor values = 1 - sums.select(1, 3) / spread;
    std::map<std::string, double> named{{"r2", values.mean().item<double>()}};
    for (int64_t k = 0; values.size(0) > 1 && k < values.size(0); ++k)
      named[fmt::format("r2_class_{}", k)] = values[k].item<double>();
    return named;
  }
  std::vector<at::Tensor> sums() override { return {sums_}; }
  void reset() override {
    if (sums_.defined()) expect(sums_.size(0));
  }

 private:
  at::Tensor sums_;  // by channel: values, their sum and sum of squares, the sum of squared errors
};
CYTRA_REGISTER(Metric, R2Metric, "R2Score");

}  // namespace
}  // namespace cytra::metrics
