#pragma once
// The targets that the network of an instance head learns from a label image.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ops/labels/star_labels.h"

namespace cytra::tasks {

/// The targets of one of two methods: flows to each object's centre and whether a voxel is an
/// object's (flows), or how deep in its object a voxel is and the distances to the border along
/// rays (stars).
struct InstanceTargets {
  std::string method = "flows";
  int64_t spatial_dims = 2;
  ops::Rays rays = {};  // of stars
  std::vector<double> anisotropy = {};
  std::optional<int64_t> ignore_index = {};
  /// Stars of every n-th voxel along each dimension, as the network's: others have the values of
  /// the last such voxel before them. Empty: of all.
  std::vector<int64_t> grid = {};

  /// labels (N,1,[D,]H,W) -> (N,K,[D,]H,W) float32; -1 for the object or probability where
  /// ignore_index says that it is not known. On the CPU.
  at::Tensor of(const at::Tensor& labels) const;
};

}  // namespace cytra::tasks
