#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// The Euclidean distance of each voxel to the nearest one that is 0, exactly (squares below 2^24
/// are; beyond, to float32); infinite where no voxel is 0. The outside of the image is ignored.
/// Linear time: parabolas' lower envelope along one axis after the other.
/// Shape: mask ([Z,]Y,X) of any real type -> float32. sampling: distance between voxels, one for
/// all axes or one per axis; empty: 1. Throws: DataError for another number of them.
/// Source: scipy.ndimage.distance_transform_edt; Felzenszwalb & Huttenlocher 2012.
at::Tensor distance_transform(const at::Tensor& mask, const std::vector<double>& sampling = {});
/// The number of steps from each voxel to the nearest one that is 0; infinite where no voxel is 0.
/// A step leads through a face (`connectivity` 1: taxicab), or through edges and corners as well
/// (0: all axes: chessboard).
/// Shape: mask ([Z,]Y,X) of any real type -> float32. Source: scipy.ndimage.distance_transform_cdt.
at::Tensor step_distance(const at::Tensor& mask, int64_t connectivity);
/// The distance transform of each image of a batch, with a distance of 1 between voxels. It uses
/// tensor operations alone, so that on a GPU the host does not wait. Work: the voxels times the
/// sum of the sides.
/// Shape: masks (N,[Z,]Y,X) of any real type -> float32.
at::Tensor distance_transforms(const at::Tensor& masks);

}  // namespace cytra::ops
