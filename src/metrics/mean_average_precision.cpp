#include "metrics/mean_average_precision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace cytra::metrics {
namespace {

constexpr std::size_t kThresholds = 10;  // IoU 0.5, 0.55 ... 0.95
constexpr int kRecalls = 101;            // 0, 0.01 ... 1

double map_threshold(std::size_t t) {
  return 0.5 + 0.05 * static_cast<double>(t);
}

struct MapBox {
  std::array<double, 4> side;  // x0 y0 x1 y1
  double score;
  double area() const { return (side[2] - side[0]) * (side[3] - side[1]); }
};

double map_iou(const MapBox& a, const MapBox& b) {
  const double width = std::min(a.side[2], b.side[2]) - std::max(a.side[0], b.side[0]);
  const double height = std::min(a.side[3], b.side[3]) - std::max(a.side[1], b.side[1]);
  if (width <= 0 || height <= 0) return 0;
  return width * height / (a.area() + b.area() - width * height);
}

/// The boxes of each class.
std::vector<std::vector<MapBox>> map_boxes(const at::Tensor& corners,
                                           const at::Tensor& scores,
                                           const at::Tensor& classes,
                                           std::size_t num_classes) {
  std::vector<std::vector<MapBox>> all(num_classes);
  const at::Tensor sides = corners.to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor kinds = classes.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor values =
      scores.defined() ? scores.to(at::kCPU, at::kDouble).contiguous() : at::Tensor();
  for (int64_t i = 0; i < kinds.numel(); ++i) {
    const auto kind = static_cast<std::size_t>(kinds.const_data_ptr<int64_t>()[i]);
    if (kind >= num_classes)
      throw std::logic_error(fmt::format(
          "mean average precision: class {} of {}", static_cast<int64_t>(kind), num_classes));
    const double* const side = sides.const_data_ptr<double>() + 4 * i;
    all[kind].push_back({{side[0], side[1], side[2], side[3]},
                         values.defined() ? values.const_data_ptr<double>()[i] : 0});
  }
  return all;
}

bool is_better(double a, double b) {
  return a > b;
}

}  // namespace

MeanAveragePrecision::MeanAveragePrecision(int64_t num_classes, int64_t max_detections)
    : objects_(at::zeros({num_classes}, at::kDouble)), max_detections_(max_detections) {}

void MeanAveragePrecision::update(const at::Tensor& boxes,
                                  const at::Tensor& scores,
                                  const at::Tensor& classes,
                                  const at::Tensor& true_boxes,
                                  const at::Tensor& true_classes) {
  const auto num_classes = static_cast<std::size_t>(objects_.numel());
  auto found = map_boxes(boxes, scores, classes, num_classes);
  const auto objects = map_boxes(true_boxes, {}, true_classes, num_classes);
  for (std::size_t c = 0; c < num_classes; ++c) {
    objects_.data_ptr<double>()[c] += static_cast<double>(objects[c].size());
    std::stable_sort(found[c].begin(), found[c].end(), [](const MapBox& a, const MapBox& b) {
      return is_better(a.score, b.score);
    });
    found[c].resize(std::min(found[c].size(), static_cast<std::size_t>(max_detections_)));
    std::vector<uint32_t> taken(objects[c].size());  // a bit for each threshold
    for (const MapBox& one : found[c]) {
      std::vector<double> ious;
      for (const MapBox& object : objects[c]) ious.push_back(map_iou(one, object));
      uint32_t right = 0;
      for (std::size_t t = 0; t < kThresholds; ++t) {
        const uint32_t bit = 1U << t;
        double best = std::min(map_threshold(t), 1 - 1e-10);
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
  const auto count = static_cast<int64_t>(found_.size());
  const at::Tensor rows =
      of_all(at::from_blob(found_.data(), {count, kColumns}, at::kDouble).clone()).contiguous();
  const auto* const first = reinterpret_cast<const Found*>(rows.const_data_ptr<double>());
  found_.assign(first, first + rows.size(0));
}

std::map<std::string, double> MeanAveragePrecision::compute() const {
  std::array<double, kThresholds> precision{};  // sums over classes
  double recall = 0;
  int64_t counted = 0;
  std::map<std::string, double> results;
  std::vector<std::vector<Found>> by_class(static_cast<std::size_t>(objects_.numel()));
  for (const Found& one : found_) by_class[static_cast<std::size_t>(one.kind)].push_back(one);
  for (std::size_t c = 0; c < by_class.size(); ++c) {
    double own = 0;
    std::vector<Found>& found = by_class[c];
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      return a.score != b.score ? is_better(a.score, b.score) : a.image < b.image;
    });
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
        const auto place =
            std::lower_bound(recalls.begin(), recalls.end(), r == 100 ? 1.0 : r * 0.01);
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

void MeanAveragePrecision::reset() {
  objects_.zero_();
  found_.clear();
  images_ = 0;
}

}  // namespace cytra::metrics
