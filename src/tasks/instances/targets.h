#pragma once
// What the instance task's network learns of a label image.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/sample.h"
#include "ops/labels/star_distances.h"

namespace cytra::tasks {

/// By one of two methods: flows to each object's centre and whether a voxel is an object's (flows),
/// or how deep in its object a voxel is and the distances to the border along rays (stars).
struct InstanceTargets {
  std::string method = "flows";
  int64_t spatial_dims = 2;
  ops::Rays rays = {};  // of stars
  std::vector<double> anisotropy = {};
  std::optional<int64_t> ignore_index = {};

  /// labels (N,1,[D,]H,W) -> (N,K,[D,]H,W) float32; -1 for the object or probability where
  /// ignore_index says that it is not known. On the CPU.
  at::Tensor of(const at::Tensor& labels) const;
};

/// Every sample's last step: checks the image and the labels, and, with `makes_targets`, leaves
/// what the network learns in place of the labels. in_channels: of the image; 0: any number.
/// Throws: DataError naming the file.
std::shared_ptr<data::Transform> make_instance_transform(const std::string& x_key,
                                                         const std::string& y_key,
                                                         int64_t in_channels,
                                                         const InstanceTargets& targets,
                                                         bool makes_targets);

}  // namespace cytra::tasks
