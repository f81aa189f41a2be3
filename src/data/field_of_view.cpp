#include "data/field_of_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cytra::data {

bool has_field(const io::Geometry& geometry) {
  return geometry.field != std::array<double, 12>{};
}

void share_field(io::Geometry& geometry,
                 const std::vector<int64_t>& size,
                 io::Geometry& image,
                 const std::vector<int64_t>& image_size) {
  const std::size_t dims = size.size();
  bool are_spaced = true;
  for (std::size_t d = 0; d < dims; ++d) {
    const double here = geometry.spacing_um[3 - dims + d], there = image.spacing_um[3 - dims + d];
    const double apart =
        here * static_cast<double>(size[d]) - there * static_cast<double>(image_size[d]);
    const bool is_wrong = size[d] != image_size[d] && std::abs(here / there - 1) < 0.01;
    are_spaced = are_spaced && here > 0 && there > 0 && !is_wrong &&
                 std::abs(apart) <= std::max(here, there);
  }
  const bool is_first = !has_field(image);
  for (std::size_t axis = 0; axis < 3; ++axis) {  // of the world, x first
    const std::size_t d = dims - 1 - std::min(axis, dims - 1);
    double scale = 1;
    if (axis < dims) {
      scale = are_spaced ? geometry.spacing_um[2 - axis] / image.spacing_um[2 - axis]
                         : static_cast<double>(image_size[d]) / static_cast<double>(size[d]);
    }
    if (is_first) image.field[5 * axis] = 1;
    geometry.field[5 * axis] = scale;
    geometry.field[4 * axis + 3] = are_spaced ? 0 : (scale - 1) / 2;
  }
}

io::Geometry in_field(io::Geometry geometry) {
  geometry.affine = std::exchange(geometry.field, {});
  geometry.sform = 1;
  const auto& a = geometry.affine;
  for (std::size_t axis = 0; axis < 3; ++axis)
    geometry.spacing_um[2 - axis] = 1000 * std::hypot(a[axis], a[4 + axis], a[8 + axis]);
  return geometry;
}

}  // namespace cytra::data
