#pragma once
// Objects as stars: each voxel of an object has the distances to the object's border along rays,
// and its depth in the object. A network learns these instead of the objects' numbers.
// Source: Schmidt 2018, Weigert 2020, StarDist; stardist/geometry, stardist/nms.py.
#include <array>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ops/labels/volume.h"

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
/// background. Shape: labels ([Z,]Y,X) -> (rays,[Z,]Y,X) float32, or with a `grid` of every n-th
/// voxel along each dimension alone. Source: stardist.geometry.star_dist.
at::Tensor star_distances(const at::Tensor& labels,
                          const Rays& rays,
                          const std::vector<int64_t>& grid = {});

/// Each voxel's distance to what is not its object, over the object's largest; 0 in the background.
/// Shape: labels ([Z,]Y,X) -> the same in float32. Source: stardist.utils.edt_prob.
at::Tensor edt_probability(const at::Tensor& labels, const std::vector<double>& anisotropy = {});

/// Labels of a network's stars: starting with the most probable, each voxel that no object covers
/// yet makes an object. Arguments and defaults are those of StarDist's predict_instances();
/// overlaps are its areas, and volumes in voxels.
struct StarsToLabels {
  static constexpr int64_t kBytesPerVoxel = 84;  // beside the values, where half are candidates
  double prob_thresh = 0.5, nms_thresh = 0.4;
  std::vector<int64_t> border{2}, grid, divisor;
  std::vector<double> anisotropy;
  bool from_logits = true;
  void visit(auto& v) {
    v("prob_thresh",
      prob_thresh,
      "probability from which on a voxel may be an object's centre",
      0,
      1);
    v("nms_thresh",
      nms_thresh,
      "an object that overlaps a more probable one by more than this is dropped; of the smaller's "
      "voxels",
      0,
      1);
    v("border",
      border,
      "voxels along the image's sides that are no centres; one number, or one for each side: "
      "before "
      "and after Z, Y, X",
      0,
      1e6);
    v("anisotropy",
      anisotropy,
      "3D: voxel sizes Z, Y, X that the rays were made for; null: equal",
      1e-12,
      1e12);
    v("grid",
      grid,
      "only every n-th voxel along Z, Y, X may be a centre, and border counts these; null: all",
      1,
      64);
    v("divisor",
      divisor,
      "border counts from the ends of an image that is filled up to multiples of these, as "
      "StarDist's; null: from its own",
      1,
      65536);
    v("from_logits", from_logits, "whether the first channel is the probability's logit");
  }
  /// Shape: (1+rays,[Z,]Y,X): the probability (or its logit), distances -> int32 ([Z,]Y,X),
  /// numbered from the most probable on; of a part of an image, too. Throws: DataError for fewer
  /// than 3 rays, in 3D 4, and for other counts of numbers in border, grid or divisor.
  at::Tensor operator()(const at::Tensor& output, const Part& part) const;
  at::Tensor operator()(const at::Tensor& output) const {
    return (*this)(output, Part::whole(output));
  }
};

}  // namespace cytra::ops
