#pragma once
// Splitting objects that touch: floods from the peaks of a distance map.
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

/// Each voxel of `mask` gets the label of the marker whose flood reaches it first. The floods rise
/// together: the next voxel is the one with the lowest level, which is at least the level of the
/// way to it; of equal ones the voxel that was reached first. Voxels that no flood reaches are 0.
/// Shape: image ([Z,]Y,X) real, markers int32 (0: none), mask bool or undefined (everywhere)
/// -> int32. connectivity: as connected_components. Throws: DataError for other shapes.
/// Source: skimage.segmentation.watershed (equal labels, also for ties, by the same heap).
at::Tensor watershed(const at::Tensor& image,
                     const at::Tensor& markers,
                     const at::Tensor& mask = {},
                     int64_t connectivity = 1);

}  // namespace cytra::ops
