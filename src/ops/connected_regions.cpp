#include "ops/connected_regions.h"

#include <array>
#include <numeric>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"

namespace cytra::ops {
namespace {

using Offset = std::array<int64_t, 3>;

/// The neighbours that come before a voxel in raster order.
std::vector<Offset> neighbours_before(int64_t connectivity) {
  std::vector<Offset> offsets;
  for (int64_t code = 0; code < 13; ++code) {  // 27 positions; the 14th is the voxel itself
    const Offset offset{code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1};
    if (std::abs(offset[0]) + std::abs(offset[1]) + std::abs(offset[2]) <= connectivity)
      offsets.push_back(offset);
  }
  return offsets;
}

/// Union-find; each root is the first voxel of its region.
class Forest {
 public:
  explicit Forest(std::size_t size) : parents_(size) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }
  int32_t root(int32_t i) {
    while (parent(i) != i) i = parent(i) = parent(parent(i));  // halves the path
    return i;
  }
  void join(int32_t a, int32_t b) {
    a = root(a);
    b = root(b);
    parent(std::max(a, b)) = std::min(a, b);
  }

 private:
  int32_t& parent(int32_t i) { return parents_[static_cast<std::size_t>(i)]; }
  std::vector<int32_t> parents_;
};

}  // namespace

Regions connected_regions(const at::Tensor& values, int64_t connectivity) {
  if (connectivity > values.dim()) {
    throw DataError(fmt::format(
        "connectivity {} in {} dimensions, expected at most that", connectivity, values.dim()));
  }
  if (values.numel() > INT32_MAX)
    throw DataError(fmt::format("{} voxels, expected at most {}", values.numel(), INT32_MAX));
  const at::Tensor volume =
      values.dim() == 3 ? values.contiguous() : values.unsqueeze(0).contiguous();
  const float* data = volume.const_data_ptr<float>();
  const std::array<int64_t, 3> size{volume.size(0), volume.size(1), volume.size(2)};
  const std::vector<Offset> offsets = neighbours_before(connectivity == 0 ? 3 : connectivity);
  Forest forest(static_cast<std::size_t>(volume.numel()));
  int64_t i = 0;
  for (int64_t z = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; ++y) {
      for (int64_t x = 0; x < size[2]; ++x, ++i) {
        if (data[i] == 0) continue;
        for (const auto& [dz, dy, dx] : offsets) {
          if (z + dz < 0 || y + dy < 0 || y + dy >= size[1] || x + dx < 0 || x + dx >= size[2])
            continue;
          const int64_t other = i + (dz * size[1] + dy) * size[2] + dx;
          if (data[other] == data[i])
            forest.join(static_cast<int32_t>(i), static_cast<int32_t>(other));
        }
      }
    }
  }
  Regions regions{std::vector<int32_t>(static_cast<std::size_t>(volume.numel())), 0};
  for (std::size_t voxel = 0; voxel < regions.labels.size(); ++voxel) {
    if (data[voxel] == 0) continue;
    const auto root = static_cast<std::size_t>(forest.root(static_cast<int32_t>(voxel)));
    if (root == voxel) regions.labels[voxel] = ++regions.count;
    regions.labels[voxel] = regions.labels[root];
  }
  return regions;
}

}  // namespace cytra::ops
