#pragma once
// Grids of smooth random deformations (resample.h says what a grid is). Source:
// monai.transforms.{RandDeformGrid, Rand2DElasticd, Rand3DElasticd, GridDistortion}.
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// Points of the coarse grid that Rand2DElasticd moves, for an image of (Y,X).
std::vector<int64_t> control_points(const std::vector<int64_t>& size,
                                    const std::vector<double>& spacing);
/// Voxels that so many control points become along an axis, before the middle is taken.
int64_t fine_size(int64_t points, double spacing);
/// offset: (2, control points), in voxels. The grid of `size`, between the points bicubic.
at::Tensor deform_2d(const std::vector<int64_t>& size,
                     const std::vector<double>& spacing,
                     const at::Tensor& offset,
                     const at::Tensor& affine);
/// offset: (3,Z,Y,X), smoothed with sigma and multiplied with magnitude, both in voxels.
at::Tensor deform_3d(const at::Tensor& offset,
                     double sigma,
                     double magnitude,
                     const at::Tensor& affine);
/// Cell i along dimension d is steps[d][i] times as long as it was.
at::Tensor distort_cells(const std::vector<int64_t>& size,
                         const std::vector<int64_t>& cells,
                         const std::vector<std::vector<double>>& steps);

}  // namespace cytra::data::spatial
