#pragma once
// Objects as stars: each voxel of an object has the distances to the object's border along rays,
// and its depth in the object. A network learns these instead of the objects' numbers.
// Source: Schmidt 2018, Weigert 2020, StarDist; stardist/geometry.
#include <array>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Directions that distances are measured along, and in 3D the triangles between them.
struct Rays {
  std::vector<std::array<float, 3>> directions;  // Z, Y, X of length 1; 2D: Z = 0
  std::vector<std::array<int32_t, 3>> faces;     // of the polyhedron; 2D: none, neighbours join
};
/// 2D: evenly round the circle; 3D: a golden spiral over the sphere, denser along an axis whose
/// voxels are longer. anisotropy: voxel sizes Z, Y, X; empty: equal.
/// Source: stardist.rays3d.Rays_GoldenSpiral.
Rays make_rays(int64_t count, int64_t dims, const std::vector<double>& anisotropy = {});

/// Distances, in voxels, from each voxel to where its object ends along each ray; 0 in the
/// background. Shape: labels ([Z,]Y,X) -> (rays,[Z,]Y,X) float32. Source:
/// stardist.geometry.star_dist.
at::Tensor star_distances(const at::Tensor& labels, const Rays& rays);

/// Each voxel's distance to what is not its object, over the object's largest; 0 in the background.
/// Shape: labels ([Z,]Y,X) -> the same in float32. Source: stardist.utils.edt_prob.
at::Tensor edt_probability(const at::Tensor& labels, const std::vector<double>& anisotropy = {});

}  // namespace cytra::ops
