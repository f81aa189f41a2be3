#include "ops/labels/volume.h"

#include <algorithm>
#include <cstdlib>

#include <ATen/ATen.h>

#include "base/error.h"

namespace cytra::ops {
namespace {

int64_t axes_of(const Offset& offset) {
  return std::abs(offset[0]) + std::abs(offset[1]) + std::abs(offset[2]);
}

}  // namespace

Part Part::whole(const at::Tensor& values) {
  const int64_t dims = values.dim() - 1;
  Part part{{0, 0, 0}, {1, 1, 1}};
  for (int64_t d = 0; d < dims; ++d)
    part.image[static_cast<std::size_t>(3 - dims + d)] = values.size(d + 1);
  return part;
}

at::Tensor as_volume(const at::Tensor& image, at::ScalarType type) {
  if (image.dim() != 2 && image.dim() != 3)
    throw DataError("{} spatial dimensions, expected 2 or 3", image.dim());
  const at::Tensor volume = image.dim() == 3 ? image : image.unsqueeze(0);
  return volume.to(at::kCPU, type).contiguous();
}

std::vector<Offset> neighbours(int64_t connectivity) {
  std::vector<Offset> offsets;
  for (int64_t code = 0; code < 27; ++code) {
    const Offset offset{code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1};
    if (code != 13 && axes_of(offset) <= connectivity) offsets.push_back(offset);
  }
  std::ranges::stable_sort(offsets, {}, axes_of);
  return offsets;
}

int64_t checked_connectivity(int64_t connectivity, int64_t dims) {
  if (connectivity > dims) {
    throw DataError("connectivity {} in {} dimensions, expected at most that", connectivity, dims);
  }
  return connectivity == 0 ? dims : connectivity;
}

}  // namespace cytra::ops
