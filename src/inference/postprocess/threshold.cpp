// Threshold: 1 where a score is above a fixed value, or above what a method finds in the image.
// Source: skimage.filters.threshold_*.
#include "inference/postprocess/step.h"
#include "inference/postprocess/thresholds.h"

namespace cytra::inference {
namespace {

struct Threshold {
  std::optional<double> threshold;
  std::string method = "fixed";
  void visit(auto& v) {
    std::vector<std::string> methods = threshold_methods();
    methods.insert(methods.begin(), "fixed");
    v("threshold", threshold, "values above become 1, others 0; for method=fixed");
    v("method", method, "fixed, or what finds the threshold of each channel", methods);
  }
  void check() const {
    if (threshold.has_value() != (method == "fixed"))
      throw ConfigError(
          "expected a threshold such as threshold=0.5, or method=otsu without threshold");
  }
  void apply(Result& result) const {
    expect_scores(result);
    for_channels(result, [&](const at::Tensor& channel) {
      return channel.gt(threshold ? *threshold : find_threshold(channel, method)).to(at::kInt);
    });
    result.is_labels = true;
    result.is_objects = false;
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& /*folder*/) const {
    return threshold ? rows_with_halo(*this, 0, form, shape) : nullptr;
  }
};
CYTRA_REGISTER(Postprocess, Step<Threshold>, "Threshold");

}  // namespace
}  // namespace cytra::inference
