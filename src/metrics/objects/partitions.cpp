// AdaptedRandError, VariationOfInformation: how far two partitions of an image into objects are
// apart, voxel by voxel; no objects are matched. Source: skimage.metrics; Arganda-Carreras et al.
// 2015, doi:10.3389/fnana.2015.00142; Meila 2007, doi:10.1016/j.jmva.2006.11.013.
#include <cmath>
#include <map>
#include <utility>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/metric.h"

namespace cytra::metrics {
namespace {

/// Voxels by label: of the truth, of the prediction, and of both.
struct Contingency {
  std::map<int64_t, double> of_truth, of_prediction;
  std::map<std::pair<int64_t, int64_t>, double> of_both;
  double voxels = 0;
};

/// `only_objects`: voxels of true objects alone, not those of the background.
Contingency contingency_of(const at::Tensor& prediction,
                           const at::Tensor& truth,
                           bool only_objects) {
  const at::Tensor predicted = prediction.to(at::kCPU, at::kLong).contiguous(),
                   real = truth.to(at::kCPU, at::kLong).contiguous();
  const int64_t *p = predicted.const_data_ptr<int64_t>(), *t = real.const_data_ptr<int64_t>();
  Contingency table;
  for (int64_t i = 0, end = 0; i < real.numel(); i = end) {  // a run of one pair at a time
    while (end < real.numel() && p[end] == p[i] && t[end] == t[i]) ++end;
    if (only_objects && t[i] == 0) continue;
    const auto run = static_cast<double>(end - i);
    table.of_truth[t[i]] += run;
    table.of_prediction[p[i]] += run;
    table.of_both[{t[i], p[i]}] += run;
    table.voxels += run;
  }
  return table;
}

/// The mean over images of some values of each, by their sums and the number of images.
class PartitionMetric : public SumsMetric {
 public:
  PartitionMetric(std::vector<std::string> names, bool only_objects)
      : SumsMetric({std::ssize(names) + 1}),
        names_(std::move(names)),
        only_objects_(only_objects) {}
  Input input() const final { return Input::objects; }
  void update(const Compared& batch) final {
    check_shapes("objects", batch, 1);
    auto sums = sums_.accessor<double, 1>();
    for (int64_t n = 0; n < batch.truth.size(0); ++n) {
      const auto counted = [&](const at::Tensor& labels) {
        return batch.mask.defined() ? labels[n].masked_select(batch.mask[n].ne(0)) : labels[n];
      };
      const std::vector<double> values =
          values_of(contingency_of(counted(batch.prediction), counted(batch.truth), only_objects_));
      if (values.empty()) continue;
      for (std::size_t i = 0; i < values.size(); ++i) sums[static_cast<int64_t>(i)] += values[i];
      sums[std::ssize(names_)] += 1;
    }
  }
  std::map<std::string, double> compute() const final {
    const auto sums = sums_.accessor<double, 1>();
    std::map<std::string, double> named;
    for (std::size_t i = 0; i < names_.size(); ++i)
      named[names_[i]] = sums[static_cast<int64_t>(i)] / sums[std::ssize(names_)];
    return named;
  }

 private:
  /// The values by name of an image; none: it does not count.
  virtual std::vector<double> values_of(const Contingency& table) const = 0;

  std::vector<std::string> names_;
  bool only_objects_;
};

struct NoOptions {
  void visit(auto& /*v*/) {}
};

/// Pairs of voxels that lie together in an object of both: "rand_precision", their share of those
/// that lie together in the prediction; "rand_recall", of those in the truth; "rand_error", 1 - F1
/// of the two. Voxels of the true background do not count. (skimage says them the other way round:
/// what it calls precision is the share of the truth's pairs.)
class AdaptedRandError final : public PartitionMetric {
 public:
  using Options = NoOptions;
  explicit AdaptedRandError(const Options& /*options*/)
      : PartitionMetric({"rand_error", "rand_precision", "rand_recall"}, /*only_objects=*/true) {}

 private:
  std::vector<double> values_of(const Contingency& table) const override {
    const auto pairs_in = [](const auto& sizes) {
      double pairs = 0;
      for (const auto& [label, voxels] : sizes) pairs += voxels * (voxels - 1);
      return pairs;
    };
    const double both = pairs_in(table.of_both), predicted = pairs_in(table.of_prediction),
                 real = pairs_in(table.of_truth);
    if (predicted + real == 0) return {};
    return {1 - 2 * both / (predicted + real),
            predicted > 0 ? both / predicted : 0,
            real > 0 ? both / real : 0};
  }
};
CYTRA_REGISTER(Metric, AdaptedRandError, "AdaptedRandError");

/// Bits: "voi_split", what the truth leaves open of the prediction (objects that were cut), and
/// "voi_merge", what the prediction leaves open of the truth (objects taken for one); "voi", their
/// sum. The background is an object like others.
class VariationOfInformation final : public PartitionMetric {
 public:
  using Options = NoOptions;
  explicit VariationOfInformation(const Options& /*options*/)
      : PartitionMetric({"voi", "voi_split", "voi_merge"}, /*only_objects=*/false) {}

 private:
  std::vector<double> values_of(const Contingency& table) const override {
    if (table.voxels == 0) return {};
    double split = 0, merge = 0;
    for (const auto& [labels, voxels] : table.of_both) {
      const double share = voxels / table.voxels;
      split -= share * std::log2(voxels / table.of_truth.at(labels.first));
      merge -= share * std::log2(voxels / table.of_prediction.at(labels.second));
    }
    return {split + merge, split, merge};
  }
};
CYTRA_REGISTER(Metric, VariationOfInformation, "VariationOfInformation");

}  // namespace
}  // namespace cytra::metrics
