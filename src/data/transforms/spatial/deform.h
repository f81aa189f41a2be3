#pragma once
// Grids of smooth random deformations (resample.h says what a grid is). Source:
// monai.transforms.{RandDeformGrid, Rand2DElasticd, Rand3DElasticd, GridDistortion}.
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// The points of the coarse grid that Rand2DElasticd moves, for an image of (Y,X).
std::vector<int64_t> control_points(const std::vector<int64_t>& size,
                                    const std::vector<double>& spacing);
/// The number of voxels that `points` control points become along an axis, before the middle is
/// cut out.
int64_t fine_size(int64_t points, double spacing);
/// The grid of `size`, bicubic between the control points. offset: (2, control points), in voxels.
at::Tensor deform_2d(const std::vector<int64_t>& size,
                     const std::vector<double>& spacing,
                     const at::Tensor& offset,
                     const at::Tensor& affine);
/// The grid deformed by offset, (3,Z,Y,X), which is smoothed with sigma and multiplied by
/// magnitude, both in voxels.
at::Tensor deform_3d(const at::Tensor& offset,
                     double sigma,
                     double magnitude,
                     const at::Tensor& affine);
/// The grid in which cell i along dimension d is steps[d][i] times as long as before.
at::Tensor distort_cells(const std::vector<int64_t>& size,
                         const std::vector<int64_t>& cells,
                         const std::vector<std::vector<double>>& steps);

}  // namespace cytra::data::spatial
