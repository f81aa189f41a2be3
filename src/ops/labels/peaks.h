#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

struct PeakOptions {
  int64_t min_distance = 1;  // voxels that peaks are apart, along some axis
  at::Tensor labels = {};    // undefined, or int32: each label's voxels are searched by themselves
  std::optional<double> threshold_abs = {};  // peaks are higher; null: than the image's lowest
};
/// Flat places of local maxima in an image ([Z,]Y,X): by label, then the highest first; of equal
/// ones in raster order. Throws: DataError for labels of another shape.
/// Source: skimage.feature.peak_local_max with exclude_border=False.
std::vector<int64_t> peak_local_max(const at::Tensor& image, const PeakOptions& options = {});

}  // namespace cytra::ops
