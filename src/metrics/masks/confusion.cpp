// ConfusionMatrixMetric: sensitivity, precision and so on of voxels; ConfusionMatrix: which class
// is taken for which. Source: monai.metrics.ConfusionMatrixMetric (compute_sample false);
// torchmetrics.ConfusionMatrix.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "metrics/masks/mask_metric.h"

namespace cytra::metrics {
namespace {

/// Numbers of voxels; NaN comes of 0 / 0.
struct Counts {
  double tp, fp, tn, fn;
  double tpr() const { return tp / (tp + fn); }
  double tnr() const { return tn / (tn + fp); }
  double ppv() const { return tp / (tp + fp); }
  double npv() const { return tn / (tn + fn); }
};

struct Rate {
  std::vector<std::string> names;
  double (*of)(const Counts& c);
};

const std::vector<Rate>& rates() {
  static const std::vector<Rate> rates{
      {{"sensitivity", "recall", "hit_rate", "true_positive_rate", "tpr"},
       [](const Counts& c) { return c.tpr(); }},
      {{"specificity", "selectivity", "true_negative_rate", "tnr"},
       [](const Counts& c) { return c.tnr(); }},
      {{"precision", "positive_predictive_value", "ppv"}, [](const Counts& c) { return c.ppv(); }},
      {{"negative_predictive_value", "npv"}, [](const Counts& c) { return c.npv(); }},
      {{"miss_rate", "false_negative_rate", "fnr"}, [](const Counts& c) { return 1 - c.tpr(); }},
      {{"fall_out", "false_positive_rate", "fpr"}, [](const Counts& c) { return 1 - c.tnr(); }},
      {{"false_discovery_rate", "fdr"}, [](const Counts& c) { return 1 - c.ppv(); }},
      {{"false_omission_rate", "for"}, [](const Counts& c) { return 1 - c.npv(); }},
      {{"prevalence_threshold", "pt"},
       [](const Counts& c) {
         return (std::sqrt(c.tpr() * (1 - c.tnr())) + c.tnr() - 1) / (c.tpr() + c.tnr() - 1);
       }},
      {{"threat_score", "critical_success_index", "ts", "csi"},
       [](const Counts& c) { return c.tp / (c.tp + c.fn + c.fp); }},
      {{"accuracy", "acc"},
       [](const Counts& c) { return (c.tp + c.tn) / (c.tp + c.tn + c.fp + c.fn); }},
      {{"balanced_accuracy", "ba"}, [](const Counts& c) { return (c.tpr() + c.tnr()) / 2; }},
      {{"f1_score", "f1"}, [](const Counts& c) { return 2 * c.tp / (2 * c.tp + c.fn + c.fp); }},
      {{"matthews_correlation_coefficient", "mcc"},
       [](const Counts& c) {
         return (c.tp * c.tn - c.fp * c.fn) /
                std::sqrt((c.tp + c.fp) * (c.tp + c.fn) * (c.tn + c.fp) * (c.tn + c.fn));
       }},
      {{"fowlkes_mallows_index", "fm"},
       [](const Counts& c) { return std::sqrt(c.ppv() * c.tpr()); }},
      {{"informedness", "bookmaker_informedness", "bm", "youden_index", "youden"},
       [](const Counts& c) { return c.tpr() + c.tnr() - 1; }},
      {{"markedness", "deltap", "mk"}, [](const Counts& c) { return c.ppv() + c.npv() - 1; }},
  };
  return rates;
}

/// Null: there is none of that name.
const Rate* rate_of(const std::string& name) {
  for (const Rate& rate : rates()) {
    for (const std::string& known : rate.names) {
      if (known == name) return &rate;
    }
  }
  return nullptr;
}

/// The rates over all voxels of all images, and those of each class.
class ConfusionRates final : public MaskMetric {
 public:
  struct Options : MaskOptions {
    std::vector<std::string> metric_name{"hit_rate"};
    void visit(auto& v) {
      MaskOptions::visit(v);
      v("metric_name", metric_name, "sensitivity, specificity, precision, f1_score, accuracy ...");
      v("compute_sample", config::Unused{{"false"}}, "voxels of all images count together");
    }
    void check() {
      std::vector<std::string> known;
      for (const Rate& rate : rates()) known.push_back(rate.names.front());
      for (std::string& name : metric_name) {
        std::ranges::replace(name, ' ', '_');
        if (rate_of(name) == nullptr)
          throw ConfigError("metric_name: no '{}'.{}", name, suggestion(name, known));
      }
    }
  };
  explicit ConfusionRates(const Options& options)
      : MaskMetric("ConfusionMatrixMetric", options, /*include_background=*/true),
        rates_(options.metric_name) {}

  std::map<std::string, double> compute() const override {
    std::map<std::string, double> named;
    const at::Tensor counts = counted();
    for (const std::string& name : rates_) {
      named[name] = std::nan("");
      if (!counts.defined()) continue;
      named[name] = value_of(name, counts.sum(0));
      for (int64_t k = 0; !is_single() && k < counts.size(0); ++k)
        named[class_name(name, k)] = value_of(name, counts[k]);
    }
    return named;
  }

 private:
  std::vector<int64_t> shape(int64_t classes) const override { return {classes, 4}; }
  at::Tensor count(const Compared& batch) const override {
    const at::Tensor tp = voxels_of(batch.prediction * batch.truth),
                     fp = voxels_of(batch.prediction) - tp, fn = voxels_of(batch.truth) - tp;
    const at::Tensor plane = batch.truth.select(1, 0).unsqueeze(1);
    const at::Tensor all = voxels_of(batch.mask.defined() ? batch.mask : at::ones_like(plane));
    return at::stack({tp, fp, all - tp - fp - fn, fn}, -1).sum(0);
  }
  static double value_of(const std::string& name, const at::Tensor& counts) {
    const auto c = counts.accessor<double, 1>();
    return rate_of(name)->of({c[0], c[1], c[2], c[3]});
  }
  std::vector<std::string> rates_;
};
CYTRA_REGISTER(Metric, ConfusionRates, "ConfusionMatrixMetric");

/// "confusion_1_2": voxels that are class 1 and predicted as 2. With one mask, 0 stands for the
/// background. With masks that overlap, a voxel counts in each of them.
class ConfusionMatrix final : public MaskMetric {
 public:
  struct Options {
    std::string normalize = "none";
    void visit(auto& v) {
      v("normalize",
        normalize,
        "shares of the true class, of the predicted one, of all voxels; none: numbers of voxels",
        {"none", "true", "pred", "all"});
    }
  };
  explicit ConfusionMatrix(const Options& options)
      : MaskMetric("ConfusionMatrix", {}, /*include_background=*/true),
        normalize_(options.normalize) {}

  at::Tensor confusion() const override { return counted(); }
  std::map<std::string, double> compute() const override {
    std::map<std::string, double> named;
    at::Tensor matrix = counted();
    if (!matrix.defined()) return named;
    if (normalize_ == "true") matrix = matrix / matrix.sum(1, /*keepdim=*/true);
    if (normalize_ == "pred") matrix = matrix / matrix.sum(0, /*keepdim=*/true);
    if (normalize_ == "all") matrix = matrix / matrix.sum();
    const auto values = matrix.accessor<double, 2>();
    for (int64_t t = 0; t < values.size(0); ++t) {
      for (int64_t p = 0; p < values.size(1); ++p)
        named[fmt::format("confusion_{}_{}", t, p)] = values[t][p];
    }
    return named;
  }

 private:
  std::vector<int64_t> shape(int64_t classes) const override {
    const int64_t side = std::max<int64_t>(classes, 2);
    return {side, side};
  }
  at::Tensor count(const Compared& batch) const override {
    const auto with_background = [&](const at::Tensor& masks) {
      if (masks.size(1) > 1) return masks;
      const at::Tensor rest = masks.eq(0);
      return at::cat({batch.mask.defined() ? rest * batch.mask : rest, masks}, 1);
    };
    constexpr int64_t kVoxels = 1 << 18;  // at a time, as they take 8 bytes each
    const auto parts = [&](const at::Tensor& masks) {
      return with_background(masks).flatten(2).split(kVoxels, 2);
    };
    const std::vector<at::Tensor> predicted = parts(batch.prediction), truth = parts(batch.truth);
    at::Tensor sum;
    for (std::size_t p = 0; p < truth.size(); ++p) {
      const at::Tensor both =
          at::matmul(truth[p].to(at::kDouble), predicted[p].to(at::kDouble).transpose(1, 2)).sum(0);
      sum = sum.defined() ? sum + both : both;
    }
    return sum;
  }
  std::string normalize_;
};
CYTRA_REGISTER(Metric, ConfusionMatrix, "ConfusionMatrix");

}  // namespace
}  // namespace cytra::metrics
