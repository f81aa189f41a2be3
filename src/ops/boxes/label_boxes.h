#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// First and last voxel along Z, Y, X.
struct Box {
  std::array<int64_t, 3> first{INT64_MAX, INT64_MAX, INT64_MAX}, last{-1, -1, -1};
  int64_t size(std::size_t axis) const { return last[axis] - first[axis] + 1; }
  /// A view of that part of a volume (Z,Y,X).
  at::Tensor part_of(const at::Tensor& volume) const;
};

/// The box of each value but 0 in a dense volume (Z,Y,X) of T (float, int32_t), ascending.
template <class T>
std::vector<std::pair<T, Box>> boxes_of(const at::Tensor& volume);

}  // namespace cytra::ops
