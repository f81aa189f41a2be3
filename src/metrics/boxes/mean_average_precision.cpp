// MeanAveragePrecision: how well boxes are found, in images of any number of spatial dimensions.

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "config/registry.h"
#include "metrics/metric.h"

namespace cytra::metrics {
namespace {

/// COCO's, numpy.linspace(0.5, 0.95, 10): an IoU of 17 / 20 reaches 0.85.
constexpr std::size_t kThresholds = 10;
constexpr std::array<double, kThresholds> kIoUs{
    0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95};
constexpr int kRecalls = 101;  // 0, 0.01 ... 1

struct MapBox {
  const double* corners;  // as ops::Boxes
  double score;
};

double map_iou(const MapBox& a, const MapBox& b, int64_t dims) {
  double shared = 1, one = 1, other = 1;
  for (int64_t d = 0; d < dims; ++d) {
    const double side =
        std::min(a.corners[dims + d], b.corners[dims + d]) - std::max(a.corners[d], b.corners[d]);
    if (side <= 0) return 0;
    shared *= side;
    one *= a.corners[dims + d] - a.corners[d];
    other *= b.corners[dims + d] - b.corners[d];
  }
  return shared / (one + other - shared);
}

/// Boxes as MeanAveragePrecision reads them, by class.
struct MapBoxes {
  MapBoxes(const ops::Boxes& boxes, std::size_t num_classes)
      : corners(boxes.corners.to(at::kCPU, at::kDouble).contiguous()), by_class(num_classes) {
    const at::Tensor kinds = boxes.classes.to(at::kCPU, at::kLong).contiguous();
    const at::Tensor scores = boxes.scores.defined()
                                  ? boxes.scores.to(at::kCPU, at::kDouble).contiguous()
                                  : at::zeros({kinds.numel()}, at::kDouble);
    for (int64_t i = 0; i < kinds.numel(); ++i) {
      const int64_t kind = kinds.const_data_ptr<int64_t>()[i];
      if (kind < 0 || kind >= static_cast<int64_t>(num_classes))
        throw std::logic_error(
            fmt::format("mean average precision: class {} of {}", kind, num_classes));
      by_class[static_cast<std::size_t>(kind)].push_back(
          {corners.const_data_ptr<double>() + i * corners.size(1),
           scores.const_data_ptr<double>()[i]});
    }
  }
  at::Tensor corners;
  std::vector<std::vector<MapBox>> by_class;
};

bool is_better(double a, double b) {
  return a > b;
}

/// COCO's mean average precision. Of each class the detections of all images are sorted by score;
/// one is right when its IoU with an object that no better one has taken reaches a threshold. A
/// class's average precision is the mean of the precision at 101 recalls; classes without objects
/// do not count. Of equal scores the one of the earlier image comes first, also where each process
/// takes every so many-th image. Source: pycocotools.cocoeval.COCOeval (equal numbers, area range
/// "all").
class MeanAveragePrecision final : public Metric {
 public:
  struct Options {
    int64_t max_detections = 100;
    void visit(auto& v) {
      v("max_detections",
        max_detections,
        "boxes of each class and image that count, the best first",
        1,
        1e9);
    }
  };
  explicit MeanAveragePrecision(const Options& options) : max_detections_(options.max_detections) {}

  Input input() const override { return Input::boxes; }
  void expect(int64_t classes) override {
    objects_ = at::zeros({classes}, at::kDouble);
    reset();
  }
  /// Throws: std::logic_error for a class beyond those that it expects.
  void update(const Compared& batch) override {
    for (std::size_t i = 0; i < batch.found.size(); ++i) add(batch.found[i], batch.objects[i]);
  }
  std::map<std::string, double> compute() const override;
  /// The curves where an IoU of 0.5 is right.
  std::vector<at::Tensor> precision_recall() const override;
  std::vector<at::Tensor> sums() override { return {objects_}; }
  void gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all) override;
  void reset() override {
    objects_.zero_();
    found_.clear();
    images_ = 0;
  }

 private:
  struct Found {  // a row of doubles
    double kind, image, score;
    double is_right;  // a bit for each threshold
  };
  void add(const ops::Boxes& boxes, const ops::Boxes& truth);
  /// What was found, by class and score.
  std::vector<std::vector<Found>> sorted() const;

  at::Tensor objects_ = at::zeros({1}, at::kDouble);  // of each class
  std::vector<Found> found_;
  int64_t max_detections_, images_ = 0;
};

void MeanAveragePrecision::add(const ops::Boxes& boxes, const ops::Boxes& truth) {
  const auto num_classes = static_cast<std::size_t>(objects_.numel());
  MapBoxes all(boxes, num_classes);
  const MapBoxes true_boxes(truth, num_classes);
  std::vector<std::vector<MapBox>>& found = all.by_class;
  const std::vector<std::vector<MapBox>>& objects = true_boxes.by_class;
  for (std::size_t c = 0; c < num_classes; ++c) {
    objects_.data_ptr<double>()[c] += static_cast<double>(objects[c].size());
    std::ranges::stable_sort(
        found[c], [](const MapBox& a, const MapBox& b) { return is_better(a.score, b.score); });
    found[c].resize(std::min(found[c].size(), static_cast<std::size_t>(max_detections_)));
    std::vector<uint32_t> taken(objects[c].size());  // a bit for each threshold
    for (const MapBox& one : found[c]) {
      std::vector<double> ious;
      for (const MapBox& object : objects[c]) ious.push_back(map_iou(one, object, boxes.dims()));
      uint32_t right = 0;
      for (std::size_t t = 0; t < kThresholds; ++t) {
        const uint32_t bit = 1U << t;
        double best = std::min(kIoUs[t], 1 - 1e-10);
        std::size_t match = ious.size();
        for (std::size_t o = 0; o < ious.size(); ++o) {
          if ((taken[o] & bit) != 0 || ious[o] < best) continue;
          best = ious[o];
          match = o;
        }
        if (match == ious.size()) continue;
        taken[match] |= bit;
        right |= bit;
      }
      found_.push_back({static_cast<double>(c),
                        static_cast<double>(images_),
                        one.score,
                        static_cast<double>(right)});
    }
  }
  ++images_;
}

void MeanAveragePrecision::gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all) {
  constexpr int64_t kColumns = sizeof(Found) / sizeof(double);
  const auto count = std::ssize(found_);
  const at::Tensor rows =
      of_all(at::from_blob(found_.data(), {count, kColumns}, at::kDouble).clone()).contiguous();
  const auto* const first = reinterpret_cast<const Found*>(rows.const_data_ptr<double>());
  found_.assign(first, first + rows.size(0));
}

std::vector<std::vector<MeanAveragePrecision::Found>> MeanAveragePrecision::sorted() const {
  std::vector<std::vector<Found>> by_class(static_cast<std::size_t>(objects_.numel()));
  for (const Found& one : found_) by_class[static_cast<std::size_t>(one.kind)].push_back(one);
  for (std::vector<Found>& found : by_class) {
    std::ranges::stable_sort(found, [](const Found& a, const Found& b) {
      return a.score != b.score ? is_better(a.score, b.score) : a.image < b.image;
    });
  }
  return by_class;
}

std::vector<at::Tensor> MeanAveragePrecision::precision_recall() const {
  std::vector<at::Tensor> curves;
  for (const std::vector<Found>& found : sorted()) {
    const double objects = objects_.const_data_ptr<double>()[curves.size()];
    std::vector<double> points;
    double right = 0;
    for (const Found& one : found) {
      right += static_cast<uint32_t>(one.is_right) & 1U;
      points.insert(points.end(),
                    {right / objects, right / (static_cast<double>(points.size()) / 2 + 1)});
    }
    curves.push_back(at::tensor(points, at::kDouble).view({-1, 2}));
  }
  return curves;
}

/// "map": the mean over IoU 0.5, 0.55 ... 0.95, "map_50", "map_75" and "mar": the mean recall; of
/// several classes also "map_class_0" ...; NaN where no objects were.
std::map<std::string, double> MeanAveragePrecision::compute() const {
  std::array<double, kThresholds> precision{};  // sums over classes
  double recall = 0;
  int64_t counted = 0;
  std::map<std::string, double> results;
  const std::vector<std::vector<Found>> by_class = sorted();
  for (std::size_t c = 0; c < by_class.size(); ++c) {
    double own = 0;
    const std::vector<Found>& found = by_class[c];
    const double objects = objects_.const_data_ptr<double>()[c];
    for (std::size_t t = 0; t < kThresholds && objects > 0; ++t) {
      std::vector<double> precisions, recalls;
      double right = 0;
      for (const Found& one : found) {
        right += (static_cast<uint32_t>(one.is_right) >> t) & 1U;
        recalls.push_back(right / objects);
        precisions.push_back(right / static_cast<double>(precisions.size() + 1));
      }
      for (std::size_t i = precisions.size(); i-- > 1;)
        precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
      double sum = 0;
      for (int r = 0; r < kRecalls; ++r) {
        // numpy.linspace(0, 1, 101)[r], which is r * 0.01
        const auto place = std::ranges::lower_bound(recalls, r == 100 ? 1.0 : r * 0.01);
        if (place == recalls.end()) break;
        sum += precisions[static_cast<std::size_t>(place - recalls.begin())];
      }
      precision[t] += sum / kRecalls;
      own += sum / kRecalls / kThresholds;
      recall += right / objects / kThresholds;
    }
    if (objects > 0) ++counted;
    if (by_class.size() > 1) results[fmt::format("map_class_{}", c)] = objects > 0 ? own : NAN;
  }
  const auto mean = [&](double sum) {
    return counted > 0 ? sum / static_cast<double>(counted) : std::nan("");
  };
  double all = 0;
  for (const double sum : precision) all += sum / kThresholds;
  results["map"] = mean(all);
  results["map_50"] = mean(precision[0]);
  results["map_75"] = mean(precision[5]);
  results["mar"] = mean(recall);
  return results;
}

CYTRA_REGISTER(Metric, MeanAveragePrecision, "MeanAveragePrecision");

}  // namespace
}  // namespace cytra::metrics
