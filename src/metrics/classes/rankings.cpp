// MulticlassAUROC, MulticlassAveragePrecision: how well the probabilities of a class tell images
// that have it from others. Source: sklearn.metrics.roc_auc_score, average_precision_score; the
// names are those of torchmetrics.classification.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "metrics/metric.h"

namespace cytra::metrics {
namespace {

/// An image's probability of a class, and whether it is of the class.
struct Ranked {
  double probability;
  bool is;
};

/// Calls `step(right, wrong)` for each probability, the largest first, with the images of this
/// probability that are of the class, and that are not.
void for_each_threshold(const std::vector<Ranked>& sorted, const auto& step) {
  for (std::size_t i = 0; i < sorted.size();) {
    double right = 0, wrong = 0;
    const double probability = sorted[i].probability;  // finite
    for (; i < sorted.size() && sorted[i].probability == probability; ++i)
      (sorted[i].is ? right : wrong) += 1;
    step(right, wrong);
  }
}

/// The area under the curve of the rate of true positives over that of false ones.
double roc_auc_of(const std::vector<Ranked>& sorted) {
  double area = 0, above = 0, others = 0;
  for_each_threshold(sorted, [&](double right, double wrong) {
    area += wrong * (above + right / 2);
    above += right;
    others += wrong;
  });
  return area / (above * others);  // 0 / 0 of one kind alone
}

/// The mean precision at the images of the class.
double average_precision_of(const std::vector<Ranked>& sorted) {
  double sum = 0, above = 0, all = 0;
  for_each_threshold(sorted, [&](double right, double wrong) {
    above += right;
    all += right + wrong;
    sum += right * above / all;
  });
  return sum / above;
}

/// Recall and precision from each probability on. Source: sklearn.metrics.precision_recall_curve,
/// the other way round and without its end of recall 0.
at::Tensor curve_of(const std::vector<Ranked>& sorted) {
  std::vector<double> points;
  double above = 0, all = 0;
  for_each_threshold(sorted, [&](double right, double wrong) {
    above += right;
    all += right + wrong;
    points.insert(points.end(), {above, above / all});
  });
  const at::Tensor curve = at::tensor(points, at::kDouble).view({-1, 2});
  curve.select(1, 0).div_(above);
  return curve;
}

enum class RankedBy { roc, precision };

/// Each class against the others, and the mean of the classes, which leaves out those that no image
/// or all images have. It keeps the probabilities of all images.
template <RankedBy kBy>
class RankingMetric final : public Metric {
  static constexpr bool kIsRoc = kBy == RankedBy::roc;
  static constexpr const char* kName = kIsRoc ? "roc_auc" : "average_precision";

 public:
  struct Options {
    void visit(auto& v) {
      v("average", config::Unused{{"macro"}}, "the mean and each class's are given");
      v("thresholds", config::Unused{{"null"}}, "every probability is one");
    }
  };
  explicit RankingMetric(const Options& /*options*/) {}
  Input input() const override { return Input::values; }
  void expect(int64_t channels) override {
    channels_ = channels;
    reset();
  }
  void update(const Compared& batch) override {
    check_shapes(kName, batch, channels_);
    if (channels_ == 0) expect(batch.truth.size(1));
    const auto rows = [](const at::Tensor& values) {
      return values.to(at::kDouble).movedim(1, -1).flatten(0, -2);
    };
    at::Tensor both = at::cat({rows(batch.prediction), rows(batch.truth)}, 1);
    if (batch.mask.defined()) both = both.index({rows(batch.mask).select(1, 0).ne(0)});
    rows_.push_back(both.cpu());
  }
  std::map<std::string, double> compute() const override {
    std::map<std::string, double> named;
    const at::Tensor all = joined();
    double sum = 0, counted = 0;
    for (int64_t k = 0; k < channels_; ++k) {
      const std::vector<Ranked> sorted = sorted_of(all, k);
      const double value = kIsRoc ? roc_auc_of(sorted) : average_precision_of(sorted);
      if (channels_ > 1) named[fmt::format("{}_class_{}", kName, k)] = value;
      if (std::isnan(value)) continue;
      sum += value;
      counted += 1;
    }
    named[kName] = sum / counted;
    return named;
  }
  std::vector<at::Tensor> precision_recall() const override {
    std::vector<at::Tensor> curves;
    const at::Tensor all = joined();
    for (int64_t k = 0; k < channels_ && !kIsRoc; ++k)
      curves.push_back(curve_of(sorted_of(all, k)));
    return curves;
  }
  std::vector<at::Tensor> sums() override { return {}; }
  void gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all) override {
    rows_ = {of_all(joined())};
  }
  void reset() override { rows_.clear(); }

 private:
  /// The images by their probability of a class, the largest first; none where one is not finite.
  std::vector<Ranked> sorted_of(const at::Tensor& all, int64_t k) const {
    std::vector<Ranked> sorted;
    bool is_finite = true;
    const auto values = all.accessor<double, 2>();
    for (int64_t i = 0; i < values.size(0); ++i) {
      const double is = values[i][channels_ + k];
      if (is != 0 && is != 1) {
        throw DataError("{}: a target of {}, expected 0 or 1", kName, is);
      }
      is_finite = is_finite && std::isfinite(values[i][k]);
      sorted.push_back({values[i][k], is == 1});
    }
    if (!is_finite) sorted.clear();  // 0 / 0: NaN
    std::ranges::sort(sorted, std::greater(), &Ranked::probability);
    return sorted;
  }
  /// (N,2K): the probabilities and targets of all images.
  at::Tensor joined() const {
    return rows_.empty() ? at::zeros({0, 2 * channels_}, at::kDouble) : at::cat(rows_);
  }
  int64_t channels_ = 0;
  std::vector<at::Tensor> rows_;
};
CYTRA_REGISTER(Metric, RankingMetric<RankedBy::roc>, "MulticlassAUROC");
CYTRA_REGISTER(Metric, RankingMetric<RankedBy::precision>, "MulticlassAveragePrecision");

}  // namespace
}  // namespace cytra::metrics
