#pragma once
// The objects that a package makes of its network's output.
#include <cstdint>
#include <vector>

#include "inference/imported/bioimageio/package.h"

namespace cytra::inference {

struct PackageObjects {
  config::Node decoder;       // an InstanceDecoder's; null: the operations make no objects
  std::vector<int64_t> grid;  // voxels of the image for one of the network's, per dimension
};

/// Reads `stardist_postprocessing` and `cellpose_flow_dynamics`, which must be the only operation
/// beside casts to float. Throws: ConfigError with the place for arguments that we do not have.
PackageObjects objects_of(const PackageTensor& output, int64_t spatial_dims);

}  // namespace cytra::inference
