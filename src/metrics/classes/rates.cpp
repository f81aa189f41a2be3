// MulticlassAccuracy, MulticlassF1Score: of classes of images (or voxels), and of labels that do
// not exclude each other. Source: torchmetrics.classification, the same names and, with
// multilabel, MultilabelAccuracy and MultilabelF1Score; sklearn.metrics.balanced_accuracy_score.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/masks/mask_metric.h"

namespace cytra::metrics {
namespace {

enum class ClassRate { accuracy, f1 };

/// The rate of all images together (micro), or the mean of the classes' (macro), which leaves out
/// classes without images.
template <ClassRate kRate>
class ClassRates final : public MaskMetric {
  static constexpr bool kIsF1 = kRate == ClassRate::f1;

 public:
  struct Options {
    std::string average = "macro";
    std::optional<bool> multilabel;
    void visit(auto& v) {
      v("average",
        average,
        "macro: the mean of the classes' values, which of the accuracy is the balanced one; micro: "
        "the value of all images together",
        {"macro", "micro"});
      v("multilabel", multilabel, "labels do not exclude each other; null: as the task says");
    }
  };
  explicit ClassRates(const Options& options)
      : MaskMetric(kIsF1                        ? "f1"
                   : options.average == "macro" ? "balanced_accuracy"
                                                : "accuracy",
                   {},
                   /*include_background=*/true),
        is_macro_(options.average == "macro"),
        multilabel_(options.multilabel.value_or(false)) {}

  std::map<std::string, double> compute() const override {
    std::map<std::string, double> named{{name(), std::nan("")}};
    const at::Tensor counts = counted();
    if (!counts.defined()) return named;
    const at::Tensor both = counts.select(1, 0), found = counts.select(1, 1),
                     is = counts.select(1, 2), isnt = counts.select(1, 3) - is,
                     neither = isnt - found + both;
    at::Tensor right = both, all = is;
    if (kIsF1) all = (found + is) / 2;
    if (!kIsF1 && multilabel_) {
      right = both + neither;
      all = is + isnt;
    }
    at::Tensor values = right / all;
    if (!kIsF1 && multilabel_ && is_macro_) values = (both / is + neither / isnt) / 2;
    named[name()] = (is_macro_ ? values.nanmean() : right.sum() / all.sum()).item<double>();
    const std::string own = kIsF1 || multilabel_ ? name() : "recall";
    for (int64_t k = 0; is_macro_ && k < values.size(0); ++k)
      named[class_name(own, k)] = values[k].item<double>();
    return named;
  }

 private:
  /// Counts the images of each class: found and true, found, true, all.
  std::vector<int64_t> shape(int64_t classes) const override {
    return {multilabel_ ? classes : std::max<int64_t>(classes, 2), 4};
  }
  at::Tensor count(const Compared& batch) const override {
    const at::Tensor known =
        batch.mask.defined() ? batch.mask : at::ones_like(batch.truth.slice(1, 0, 1), at::kBool);
    const auto of_classes = [&](const at::Tensor& masks) {
      return masks.size(1) > 1 || multilabel_ ? masks : at::cat({masks.eq(0) * known, masks}, 1);
    };
    const at::Tensor found = of_classes(batch.prediction), is = of_classes(batch.truth);
    return at::stack({voxels_of(found * is),
                      voxels_of(found),
                      voxels_of(is),
                      voxels_of(known).expand({-1, found.size(1)})},
                     -1)
        .sum(0);
  }
  bool is_macro_, multilabel_;
};
CYTRA_REGISTER(Metric, ClassRates<ClassRate::accuracy>, "MulticlassAccuracy");
CYTRA_REGISTER(Metric, ClassRates<ClassRate::f1>, "MulticlassF1Score");

}  // namespace
}  // namespace cytra::metrics
