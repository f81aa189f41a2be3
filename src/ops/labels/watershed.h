#pragma once
// Splitting objects that touch: floods from the peaks of a distance map (ops/labels/peaks.h).
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

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
