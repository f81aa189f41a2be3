#pragma once
// Computes where voxels are in the world after a transform, like MONAI's MetaTensor.affine.
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::data::spatial {

/// Changes the geometry for a result whose voxel p is the given image's voxel matrix @ p, both
/// homogeneous, (z,y,x,1) or (y,x,1), in float64. Affine and spacing are changed; unknown values
/// stay unknown.
void move_voxels(io::Geometry& geometry, const at::Tensor& matrix);
/// Changes the geometry for scale * p + shift, per spatial dimension; an empty scale: 1.
void move_voxels(io::Geometry& geometry,
                 const std::vector<double>& scale,
                 const std::vector<double>& shift);

/// The axis of the world (0 right, 1 anterior, 2 superior) that each spatial axis (z,y,x) of a
/// volume follows most, and whether it is reversed. Source: nibabel's io_orientation.
std::vector<std::pair<int64_t, bool>> world_axes(const io::Geometry& geometry);

}  // namespace cytra::data::spatial
