// Part of io/zarr/ome_zarr_write.h: smaller levels of an image.
#include <algorithm>
#include <type_traits>

#include "io/pixels/stored.h"
#include "io/zarr/ome_zarr_write.h"

namespace cytra::io {
namespace {

template <class T>
T mean_of(const T* from,
          const std::array<int64_t, 3>& size,
          const std::array<int64_t, 3>& strides) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  Sum sum = 0;
  for (int64_t z = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; ++y) {
      for (int64_t x = 0; x < size[2]; ++x)
        sum += from[z * strides[0] + y * strides[1] + x * strides[2]];
    }
  }
  const int64_t count = size[0] * size[1] * size[2];
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(sum / static_cast<double>(count));
  } else {
    const int64_t doubled = 2 * sum + count, divisor = 2 * count;
    return static_cast<T>(doubled >= 0 ? doubled / divisor : -((divisor - 1 - doubled) / divisor));
  }
}

template <class T>
void shrink_as(const Image& image,
               const std::array<int64_t, 3>& factor,
               bool is_nearest,
               Image& into) {
  const auto* from = reinterpret_cast<const T*>(image.pixels.data());
  auto* to = reinterpret_cast<T*>(into.pixels.data());
  const std::array<int64_t, 3> strides{image.shape[2] * image.shape[3], image.shape[3], 1};
  for (int64_t c = 0; c < into.shape[0]; ++c, from += image.shape[1] * strides[0]) {
    for (int64_t z = 0; z < into.shape[1]; ++z) {
      for (int64_t y = 0; y < into.shape[2]; ++y) {
        const T* row = from + z * factor[0] * strides[0] + y * factor[1] * strides[1];
        for (int64_t x = 0; x < into.shape[3]; ++x) {
          const std::array<int64_t, 3> size{std::min(factor[0], image.shape[1] - z * factor[0]),
                                            std::min(factor[1], image.shape[2] - y * factor[1]),
                                            std::min(factor[2], image.shape[3] - x * factor[2])};
          const T* first = row + x * factor[2];
          *to++ = is_nearest ? *first : mean_of(first, size, strides);
        }
      }
    }
  }
}

}  // namespace

std::vector<PyramidLevel> pyramid_levels(const std::array<int64_t, 4>& shape,
                                         const std::array<double, 3>& spacing_um,
                                         int64_t most) {
  constexpr int64_t kSmall = 256, kMost = 30;
  std::vector<PyramidLevel> levels{{shape, {1, 1, 1}}};
  for (;;) {
    PyramidLevel level = levels.back();
    const auto count = std::ssize(levels);
    const int64_t larger = std::max(level.shape[2], level.shape[3]);
    if (larger == 1 || (most == 0 ? larger <= kSmall : count >= most) || count >= kMost)
      return levels;
    const auto spacing = [&](std::size_t i) {
      return spacing_um[i] * static_cast<double>(level.factor[i]);
    };
    constexpr double kAlike = 1.42;  // halving brings Z no further from X than it is
    const bool has_flat_z = spacing(0) <= 0 || spacing(2) <= 0 || spacing(0) > kAlike * spacing(2);
    for (std::size_t i = has_flat_z ? 1 : 0; i < 3; ++i) {
      if (level.shape[i + 1] > 1) level.factor[i] *= 2;
      level.shape[i + 1] = (level.shape[i + 1] + 1) / 2;
    }
    levels.push_back(level);
  }
}

Image shrink(const Image& image, const std::array<int64_t, 3>& factor, bool is_nearest) {
  Image into;
  into.dtype = image.dtype;
  into.shape[0] = image.shape[0];
  for (std::size_t i = 0; i < 3; ++i)
    into.shape[i + 1] = (image.shape[i + 1] + factor[i] - 1) / factor[i];
  into.pixels.resize(into.bytes());
  with_type(image.dtype,
            [&](auto value) { shrink_as<decltype(value)>(image, factor, is_nearest, into); });
  return into;
}

}  // namespace cytra::io
