#pragma once
// What the convolutions of images and volumes share: a plane is a volume with a depth of 1.
#include <algorithm>
#include <array>
#include <cstdint>

#include <c10/util/ArrayRef.h>

namespace cytra::ops::cpu {

using Triple = std::array<int64_t, 3>;  // depth, height, width

/// The numbers of two or three sides; `missing` for the depth of a plane.
inline Triple triple(c10::IntArrayRef values, int64_t missing) {
  Triple result{missing, missing, missing};
  std::ranges::copy(values, result.end() - std::ssize(values));
  return result;
}

inline bool are_all(c10::IntArrayRef values, int64_t value) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == value; });
}

inline int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace cytra::ops::cpu
