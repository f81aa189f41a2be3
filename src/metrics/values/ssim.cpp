// SSIMMetric: structural similarity. Source: monai.metrics.regression.SSIMMetric.
#include "ops/ssim.h"

#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/values/value_metric.h"

namespace cytra::metrics {
namespace {

class SsimMetric final : public ValueMetric {
 public:
  struct Options : ops::SsimOptions {
    std::optional<double> data_range = 1.0;
    template <class V>
    void visit(V& v) {
      v("data_range",
        data_range,
        "range of the values; null: that of each true image",
        1e-300,
        1e300);
      v("spatial_dims", config::Unused{}, "the images say it");
      ops::SsimOptions::visit(v);
    }
  };
  explicit SsimMetric(const Options& options) : ValueMetric("ssim"), options_(options) {}

 private:
  /// Measures the windows whose middle is in the mask; voxels outside of the mask are taken as
  /// equal.
  Values measure(const Compared& batch) const override {
    const at::Tensor& truth = batch.truth;
    const int64_t images = truth.size(0), dims = truth.dim() - 2;
    const at::Tensor range = options_.data_range
                                 ? at::full({images}, *options_.data_range, truth.options())
                                 : range_of(batch).to(truth.scalar_type());
    std::vector<int64_t> shape(static_cast<std::size_t>(truth.dim()), 1);
    shape[0] = images;
    at::Tensor counts = batch.mask;
    const at::Tensor prediction =
        counts.defined() ? at::where(counts.ne(0), batch.prediction, truth) : batch.prediction;
    const at::Tensor similarity = ops::ssim(prediction, truth, range.view(shape), options_);
    if (counts.defined()) {
      const std::vector<int64_t> window = ops::ssim_window(options_, dims);
      for (int64_t d = 0; d < dims; ++d) {
        counts =
            counts.narrow(d + 2, window[static_cast<std::size_t>(d)] / 2, similarity.size(d + 2));
      }
    }
    const at::Tensor number = number_of({similarity, similarity, counts});
    return {sum_of(similarity, counts) / number, number.gt(0).logical_and(range.gt(0))};
  }
  Options options_;
};
CYTRA_REGISTER(Metric, SsimMetric, "SSIMMetric");

}  // namespace
}  // namespace cytra::metrics
