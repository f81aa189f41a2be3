// AveragePrecision, PanopticQualityMetric, ObjectF1: which objects are found. Source:
// stardist.matching, monai.metrics.PanopticQualityMetric; Kirillov et al. 2019.
#include <array>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/metric.h"
#include "metrics/objects/matching.h"

namespace cytra::metrics {
namespace {

/// The counts over all images, for one threshold of the IoU.
struct ObjectCounts {
  double tp, fp, fn, iou_sum;
  double objects() const { return tp + fp + fn; }
};

/// 0 where nothing was found.
double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

/// The sums for each threshold: TP, FP, FN, the matches' IoUs; the sum of images' TP / (TP + FP +
/// FN), and the number of images with objects.
class ObjectMetric : public SumsMetric {
 public:
  explicit ObjectMetric(std::vector<double> thresholds)
      : SumsMetric({std::ssize(thresholds), 6}), thresholds_(std::move(thresholds)) {}
  Input input() const final { return Input::objects; }
  void update(const Compared& batch) final {
    check_shapes("objects", batch, 1);
    const auto counted = [&](const at::Tensor& labels, int64_t n) {
      return batch.mask.defined() ? labels[n] * batch.mask[n] : labels[n];
    };
    auto sums = sums_.accessor<double, 2>();
    for (int64_t n = 0; n < batch.truth.size(0); ++n) {
      const ObjectOverlaps overlaps =
          overlaps_of(counted(batch.prediction, n), counted(batch.truth, n));
      for (std::size_t i = 0; i < thresholds_.size(); ++i) {
        const Matches matches = match(overlaps, thresholds_[i]);
        const auto tp = static_cast<double>(matches.pairs);
        const double fp = static_cast<double>(overlaps.predicted_objects) - tp,
                     fn = static_cast<double>(overlaps.true_objects) - tp, all = tp + fp + fn;
        const std::array<double, 6> row{
            tp, fp, fn, matches.iou_sum, share(tp, all), all > 0 ? 1. : 0.};
        for (std::size_t j = 0; j < row.size(); ++j)
          sums[static_cast<int64_t>(i)][static_cast<int64_t>(j)] += row[j];
      }
    }
  }

 protected:
  const std::vector<double>& thresholds() const { return thresholds_; }
  ObjectCounts counts(std::size_t i) const {
    const auto row = sums_.accessor<double, 2>()[static_cast<int64_t>(i)];
    return {row[0], row[1], row[2], row[3]};
  }
  /// The mean over images of TP / (TP + FP + FN).
  double mean_accuracy(std::size_t i) const {
    const auto row = sums_.accessor<double, 2>()[static_cast<int64_t>(i)];
    return row[4] / row[5];
  }

 private:
  std::vector<double> thresholds_;
};

/// TP / (TP + FP + FN), as Cellpose and StarDist say it, at each IoU and their mean.
class AveragePrecision final : public ObjectMetric {
 public:
  struct Options {
    std::vector<double> thresholds{0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95};
    bool by_image = false;
    void visit(auto& v) {
      v("thresholds", thresholds, "IoU from which on objects match", 1e-6, 1);
      v("by_image",
        by_image,
        "the mean over images with objects, as in Cellpose; false: all objects together");
    }
  };
  explicit AveragePrecision(const Options& options)
      : ObjectMetric(options.thresholds), by_image_(options.by_image) {}

  std::map<std::string, double> compute() const override {
    std::map<std::string, double> named{{"ap", 0}};
    for (std::size_t i = 0; i < thresholds().size(); ++i) {
      const ObjectCounts c = counts(i);
      const double value = by_image_ ? mean_accuracy(i) : c.tp / c.objects();
      named["ap"] += value / static_cast<double>(thresholds().size());
      if (thresholds()[i] == 0.5) named["ap50"] = value;
      if (thresholds()[i] == 0.75) named["ap75"] = value;
    }
    return named;
  }

 private:
  bool by_image_;
};
CYTRA_REGISTER(Metric, AveragePrecision, "AveragePrecision");

/// "sq", the matches' mean IoU, "rq", the F1 of objects, and "pq", their product.
class PanopticQuality final : public ObjectMetric {
 public:
  struct Options {
    double match_iou_threshold = 0.5;
    void visit(auto& v) {
      v("match_iou_threshold", match_iou_threshold, "objects match above this IoU", 0, 1);
    }
  };
  explicit PanopticQuality(const Options& options)
      : ObjectMetric({std::nextafter(options.match_iou_threshold, 2)}) {}

  std::map<std::string, double> compute() const override {
    const ObjectCounts c = counts(0);
    const double none = c.objects() > 0 ? 0 : std::nan("");
    const double half = c.tp + (c.fp + c.fn) / 2;
    return {{"sq", none + share(c.iou_sum, c.tp)},
            {"rq", none + share(c.tp, half)},
            {"pq", none + share(c.iou_sum, half)}};
  }
};
CYTRA_REGISTER(Metric, PanopticQuality, "PanopticQualityMetric", "PanopticQuality");

/// The share of objects that are found: "object_precision" of the predicted ones, "object_recall"
/// of the true ones, "object_f1" of both.
class ObjectF1 final : public ObjectMetric {
 public:
  struct Options {
    double threshold = 0.5;
    void visit(auto& v) { v("threshold", threshold, "IoU from which on objects match", 1e-6, 1); }
  };
  explicit ObjectF1(const Options& options) : ObjectMetric({options.threshold}) {}

  std::map<std::string, double> compute() const override {
    const ObjectCounts c = counts(0);
    const double none = c.objects() > 0 ? 0 : std::nan("");
    return {{"object_precision", none + share(c.tp, c.tp + c.fp)},
            {"object_recall", none + share(c.tp, c.tp + c.fn)},
            {"object_f1", none + share(2 * c.tp, 2 * c.tp + c.fp + c.fn)}};
  }
};
CYTRA_REGISTER(Metric, ObjectF1, "ObjectF1");

}  // namespace
}  // namespace cytra::metrics
