#pragma once
// How kernels see an image: as a dense volume (Z,Y,X); a 2D image has Z = 1.
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Z, Y, X.
using Offset = std::array<int64_t, 3>;

/// Where values lie in an image: their first voxel, and the image's size; 2D: Z is 0 of 1.
struct Part {
  Offset first, image;
  /// Says that values (C,[Z,]Y,X) are the whole image.
  static Part whole(const at::Tensor& values);
};

/// Whether a label is NaN, which is background.
template <class T>
bool is_nan(T label) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(label);
  return false;
}

/// ([Z,]Y,X) as a dense (Z,Y,X) of `type`; the same memory where that is possible.
at::Tensor as_volume(const at::Tensor& image, at::ScalarType type);

/// The neighbours of a voxel: those that differ by 1 along at most `connectivity` axes. The nearest
/// first, else in raster order. Range: 1..3.
std::vector<Offset> neighbours(int64_t connectivity);

/// `connectivity`, where 0 stands for all axes of an image of `dims`. Throws: DataError for more of
/// it than axes.
int64_t checked_connectivity(int64_t connectivity, int64_t dims);

}  // namespace cytra::ops
