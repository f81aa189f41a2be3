#pragma once
// Which predicted objects are which true ones.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::metrics {

/// The objects of an image that share voxels.
struct ObjectOverlaps {
  struct Pair {
    int64_t truth, prediction;  // from 0
    double iou;
  };
  int64_t true_objects = 0, predicted_objects = 0;
  std::vector<Pair> pairs;
};

/// Finds the pairs of objects that share voxels, in one pass. Shape: prediction, truth of one
/// size, whole numbers in any type, 0: none.
ObjectOverlaps overlaps_of(const at::Tensor& prediction, const at::Tensor& truth);

/// Pairs of one true and one predicted object each.
struct Matches {
  int64_t pairs = 0;
  double iou_sum = 0;
};

/// The largest possible number of pairs with an IoU of `threshold` or more; of several such
/// choices the one with the largest sum of IoUs. Source: stardist.matching.matching.
Matches match(const ObjectOverlaps& overlaps, double threshold);

}  // namespace cytra::metrics
