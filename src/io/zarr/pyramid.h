#pragma once
// Smaller levels of an image; for zarr*.cpp only.
#include <stdexcept>
#include <vector>

#include "io/image.h"

namespace cytra::io {

/// Calls action with a value of the type.
template <class Action>
auto with_type(Dtype dtype, const Action& action) {
  switch (dtype) {
    case Dtype::u8:
      return action(uint8_t{});
    case Dtype::i8:
      return action(int8_t{});
    case Dtype::u16:
      return action(uint16_t{});
    case Dtype::i16:
      return action(int16_t{});
    case Dtype::u32:
      return action(uint32_t{});
    case Dtype::i32:
      return action(int32_t{});
    case Dtype::f32:
      return action(float{});
    case Dtype::f64:
      return action(double{});
  }
  throw std::logic_error("unknown sample type");
}

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
