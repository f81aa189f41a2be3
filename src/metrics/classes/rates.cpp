// MulticlassAccuracy, MulticlassF1Score: of class numbers, one for each image (or voxel). Source:
// torchmetrics.classification, the same names; the macro accuracy is
// sklearn.metrics.balanced_accuracy_score.
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/masks/mask_metric.h"

namespace cytra::metrics {
namespace {

enum class ClassRate { accuracy, f1 };

/// The rate of all images together (micro), or the mean of the classes' (macro), which leaves out
/// classes that no image has. Masks are those of classes that exclude each other.
template <ClassRate kRate>
class ClassNumbers final : public MaskMetric {
  static constexpr bool kIsF1 = kRate == ClassRate::f1;

 public:
  struct Options {
    std::string average = "macro";
    template <class V>
    void visit(V& v) {
      v("average",
        average,
        "macro: the mean of the classes' values, which of the accuracy is the balanced one; micro: "
        "the value of all images together",
        {"macro", "micro"});
    }
  };
  explicit ClassNumbers(const Options& options)
      : MaskMetric(kIsF1                        ? "f1"
                   : options.average == "macro" ? "balanced_accuracy"
                                                : "accuracy",
                   {},
                   /*include_background=*/true),
        is_macro_(options.average == "macro") {}

  std::map<std::string, double> compute() const override {
    std::map<std::string, double> named{{name(), std::nan("")}};
    const at::Tensor counts = counted();
    if (!counts.defined()) return named;
    const at::Tensor right = counts.select(1, 0), found = counts.select(1, 1),
                     is = counts.select(1, 2);
    const at::Tensor all = kIsF1 ? (found + is) / 2 : is, values = right / all;
    named[name()] = (is_macro_ ? values.nanmean() : right.sum() / all.sum()).item<double>();
    for (int64_t k = 0; is_macro_ && k < values.size(0); ++k)
      named[class_name(kIsF1 ? "f1" : "recall", k)] = values[k].item<double>();
    return named;
  }

 private:
  /// Counts the images of each class: found and true, found, true.
  std::vector<int64_t> shape(int64_t classes) const override {
    return {std::max<int64_t>(classes, 2), 3};
  }
  at::Tensor count(const Compared& batch) const override {
    const auto with_background = [&](const at::Tensor& masks) {
      if (masks.size(1) > 1) return masks;
      const at::Tensor rest = masks.eq(0);
      return at::cat({batch.mask.defined() ? rest * batch.mask : rest, masks}, 1);
    };
    const at::Tensor found = with_background(batch.prediction), is = with_background(batch.truth);
    return at::stack({voxels_of(found * is), voxels_of(found), voxels_of(is)}, -1).sum(0);
  }
  bool is_macro_;
};
CYTRA_REGISTER(Metric, ClassNumbers<ClassRate::accuracy>, "MulticlassAccuracy");
CYTRA_REGISTER(Metric, ClassNumbers<ClassRate::f1>, "MulticlassF1Score");

}  // namespace
}  // namespace cytra::metrics
