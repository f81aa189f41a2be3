#pragma once
// Smaller levels of an image; for zarr*.cpp only.
#include <vector>

#include "io/image.h"

namespace cytra::io {

struct PyramidLevel {
  std::array<int64_t, 4> shape{};          // C, Z, Y, X
  std::array<int64_t, 3> factor{1, 1, 1};  // Z, Y, X, against level 0
};
/// The levels, from level 0 on. `most` 0: until Y and X are at most 256.
std::vector<PyramidLevel> pyramid_levels(const std::array<int64_t, 4>& shape,
                                         const std::array<double, 3>& spacing_um,
                                         int64_t most);

/// Shrinks `image` by `factor` (1 or 2 for Z, Y, X), with sizes rounded up: to the mean of the
/// existing voxels (integers rounded, halves up), or to the first of them.
Image shrink(const Image& image, const std::array<int64_t, 3>& factor, bool is_nearest);

}  // namespace cytra::io
