#pragma once
// Makes matrices for the axes of tensors from the affines of images, to bring one image to the
// voxels of another.
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::data::spatial {

/// The matrix from (z,y,x,1) or (y,x,1) to a world of (z,y,x) or (y,x) in mm. float64. A plane, or
/// a volume without a known affine, has its own axes as the world. Throws: DataError (no spacing).
at::Tensor axes_of(const io::Geometry& geometry, std::size_t dims);
/// The matrix by which voxel p of an image placed as `wanted` is voxel matrix @ p of an image
/// placed as `given`, both homogeneous, (z,y,x,1) or (y,x,1). float64. Where one has no affine,
/// their first voxels are at the same place. Throws: DataError (no spacing; planes that are not
/// the same).
at::Tensor voxels_between(const io::Geometry& given, const io::Geometry& wanted, std::size_t dims);
/// Whether the matrix is the identity up to MONAI's tolerance: then nothing is resampled.
bool is_identity(const at::Tensor& matrix);
/// Resamples (C,[Z,]Y,X) to the voxels of `wanted`, of `size`. Mode: as for sample_affine().
/// Throws: what voxels_between() throws, and DataError for images that have no voxel in common.
at::Tensor resample_onto(const at::Tensor& image,
                         const io::Geometry& given,
                         const io::Geometry& wanted,
                         const std::vector<int64_t>& size,
                         const std::string& mode,
                         const std::string& padding_mode,
                         bool align_corners);

}  // namespace cytra::data::spatial
