#pragma once
// How well boxes are found.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::metrics {

/// COCO's mean average precision. Of each class the detections of all images are sorted by score;
/// one is right when its IoU with an object that no better one has taken reaches a threshold. A
/// class's average precision is the mean of the precision at 101 recalls; classes without objects
/// do not count. Source: pycocotools.cocoeval.COCOeval (equal numbers, area range "all").
class MeanAveragePrecision {
 public:
  /// Counts the `max_detections` best predictions of each class in an image.
  explicit MeanAveragePrecision(int64_t num_classes, int64_t max_detections = 100);
  /// An image: boxes (K,4) as x0 y0 x1 y1, scores (K), classes (K) from 0; objects (M,4), (M). Any
  /// device. Throws: std::logic_error for a class beyond num_classes.
  void update(const at::Tensor& boxes,
              const at::Tensor& scores,
              const at::Tensor& classes,
              const at::Tensor& true_boxes,
              const at::Tensor& true_classes);
  /// "map": the mean over IoU 0.5, 0.55 ... 0.95, "map_50", "map_75" and "mar": the mean recall;
  /// of several classes also "map_class_0" ...; NaN where no objects were.
  std::map<std::string, double> compute() const;
  void reset();

  /// Several processes have the numbers of one when they add these up, as Metric::sums(), and
  /// gather(): `of_all` gives the rows (N,K) of all, by rank, for those of this one. Of equal
  /// scores the one of the earlier image comes first, if each takes every so many-th image.
  std::vector<at::Tensor> sums() { return {objects_}; }
  void gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all);

 private:
  struct Found {  // a row of doubles
    double kind, image, score;
    double is_right;  // a bit for each threshold
  };
  at::Tensor objects_;  // (classes), double
  std::vector<Found> found_;
  int64_t max_detections_, images_ = 0;
};

}  // namespace cytra::metrics
