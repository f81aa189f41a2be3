#pragma once
#include <array>
#include <cstdint>

#include "ops/windows/sums.h"

namespace cytra::ops {

/// A window's part in the image along each axis.
struct WindowBox {
  std::array<int64_t, 3> from, to;  // in the image
  std::array<int64_t, 3> skip;      // voxels of the window in front of `from`
  /// Voxels whose every coordinate is at least this are covered by no earlier window.
  std::array<int64_t, 3> fresh;
};
WindowBox box_of(const WindowGrid& grid, int64_t w);

}  // namespace cytra::ops
