#pragma once
// Affines of MONAI's golden cases as io::Geometry has them.
#include <array>
#include <cmath>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace cytra {

/// MONAI's columns are the tensor's axes, (z,y,x) or (y,x) and one more; ours are (x,y,z).
inline std::array<double, 12> of_xyz(const std::string& text, std::size_t dims) {
  std::array<double, 12> rows{};
  std::istringstream stream(text);
  for (double& value : rows) stream >> value;
  EXPECT_TRUE(stream) << text;
  std::array<double, 12> affine{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      const std::size_t from = column < dims ? dims - 1 - column : column;
      affine[4 * row + column] = rows[4 * row + from];
    }
  }
  return affine;
}

/// In um, (z,y,x).
inline std::array<double, 3> spacing_of(const std::array<double, 12>& affine) {
  std::array<double, 3> spacing{};
  for (std::size_t column = 0; column < 3; ++column) {
    spacing[2 - column] = 1000 * std::hypot(affine[column], affine[4 + column], affine[8 + column]);
  }
  return spacing;
}

}  // namespace cytra
