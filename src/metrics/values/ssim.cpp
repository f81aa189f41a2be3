// SSIMMetric: structural similarity. Source: monai.metrics.regression.SSIMMetric; with a reflected
// border torchmetrics' StructuralSimilarityIndexMeasure.
#include "ops/ssim.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "metrics/values/value_metric.h"

namespace cytra::metrics {
namespace {

class SsimMetric final : public ValueMetric {
 public:
  struct Options : ops::SsimOptions {
    std::optional<double> data_range = 1.0;
    std::string border = "none";
    void visit(auto& v) {
      v("data_range",
        data_range,
        "range of the values; null: that of each true image",
        1e-300,
        1e300);
      v("border",
        border,
        "none: windows that lie within the image, as MONAI; reflect: a window for each voxel of "
        "the "
        "image, which is mirrored at its ends, as torchmetrics",
        {"none", "reflect"});
      v("spatial_dims", config::Unused{}, "the images say it");
      ops::SsimOptions::visit(v);
    }
  };
  explicit SsimMetric(const Options& options) : ValueMetric("ssim"), options_(options) {
    for (const int64_t side : options.win_size) {
      if (options.border == "reflect" && side % 2 == 0)
        throw ConfigError("SSIMMetric: win_size {} is even, expected odd ones with border=reflect",
                          side);
    }
  }

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
    const std::vector<int64_t> window = ops::ssim_window(options_, dims);
    const bool is_reflected = options_.border == "reflect";
    std::vector<int64_t> widths;  // the last axis first
    for (auto side = window.rbegin(); side != window.rend(); ++side)
      widths.insert(widths.end(), 2, *side / 2);
    const auto bordered = [&](const at::Tensor& image) {
      return is_reflected ? at::pad(image, widths, "reflect") : image;
    };
    const at::Tensor similarity =
        ops::ssim(bordered(prediction), bordered(truth), range.view(shape), options_);
    if (counts.defined() && !is_reflected) {
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
