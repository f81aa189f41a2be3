#pragma once
// The affine of an image as a matrix for its tensor's axes, to bring one image to the voxels of
// another.
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::data::spatial {

/// For (z,y,x,1) or (y,x,1), to a world of (z,y,x) or (y,x) in mm. float64. A plane, or a volume
/// whose affine is not known, has axes of its own. Throws: DataError (no spacing).
at::Tensor axes_of(const io::Geometry& geometry, std::size_t dims);
/// Voxel p of an image that lies as `wanted` is voxel matrix @ p of one that lies as `given`, both
/// homogeneous, (z,y,x,1) or (y,x,1). float64. Where one has no affine, their first voxels lie on
/// each other. Throws: DataError (no spacing; planes that are not the same).
at::Tensor voxels_between(const io::Geometry& given, const io::Geometry& wanted, std::size_t dims);
/// By MONAI's tolerance: what differs less is not resampled.
bool is_identity(const at::Tensor& matrix);
/// (C,[Z,]Y,X) brought to the voxels of `wanted`, of `size`. Mode: of sample_affine(). Throws: as
/// voxels_between(), and for images that have no voxel in common.
at::Tensor resample_onto(const at::Tensor& image,
                         const io::Geometry& given,
                         const io::Geometry& wanted,
                         const std::vector<int64_t>& size,
                         const std::string& mode,
                         const std::string& padding_mode,
                         bool align_corners);

}  // namespace cytra::data::spatial
