// Threshold: 1 where a score is above a fixed value, or above what a method finds in the image.
// Source: skimage.filters.threshold_*.
#include "inference/postprocess/step.h"
#include "inference/postprocess/thresholds.h"

namespace cytra::inference {
namespace {

class Threshold final : public Postprocess {
 public:
  struct Options {
    std::optional<double> threshold;
    std::string method = "fixed";
    template <class V>
    void visit(V& v) {
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
  };
  explicit Threshold(const Options& options) : options_(options) {}
  void apply(Result& result) const override {
    expect_scores(result);
    for_channels(result, [&](const at::Tensor& channel) {
      const double threshold =
          options_.threshold ? *options_.threshold : find_threshold(channel, options_.method);
      return channel.gt(threshold).to(at::kInt);
    });
    result.is_labels = true;
    result.is_objects = false;
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Postprocess, Threshold, "Threshold");

}  // namespace
}  // namespace cytra::inference
