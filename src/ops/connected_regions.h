#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Connected voxels of one value.
struct Regions {
  std::vector<int32_t> labels;  // per voxel in raster order: 0 where the value is 0, else 1..count
  int32_t count = 0;            // labels ascend by each region's first voxel
};

/// Shape: values ([Z,]Y,X) float. Voxels touch when they differ by 1 along at most `connectivity`
/// axes; 0: all axes. Throws: DataError for more connectivity than axes.
Regions connected_regions(const at::Tensor& values, int64_t connectivity);

}  // namespace cytra::ops
