#pragma once
#include <array>
#include <cstdint>

#include "ops/windows/sums.h"

namespace cytra::ops {

/// A window's part in the image along each axis.
struct WindowBox {
  std::array<int64_t, 3> from, to;  // in the image
  std::array<int64_t, 3> skip;      // voxels of the window in front of `from`
  /// No window before covers a voxel whose every coordinate is from here on.
  std::array<int64_t, 3> fresh;
};
WindowBox box_of(const WindowGrid& grid, int64_t w);

}  // namespace cytra::ops
