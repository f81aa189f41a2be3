#pragma once
// Finds the chunks that a box touches; for zarr*.cpp only.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "io/zarr/array.h"

namespace cytra::io {

/// The chunks that boxes touch, from the first to the last along each dimension.
struct Grid {
  Grid(std::size_t rank, const Extent& chunk, const std::vector<Box>& boxes) {
    for (std::size_t i = 0; i < rank; ++i) {
      first[i] = std::numeric_limits<int64_t>::max();
      last[i] = -1;
      for (const Box& box : boxes) {
        first[i] = std::min(first[i], box.begin[i] / chunk[i]);
        last[i] = std::max(last[i], (box.begin[i] + box.size[i] - 1) / chunk[i]);
      }
    }
  }
  Extent first{}, last{};
};

/// The parts of boxes in a chunk, in its coordinates.
inline std::vector<Box> clip(const std::vector<Box>& boxes,
                             std::size_t rank,
                             const Extent& chunk,
                             const Extent& position,
                             const Extent& strides) {
  std::vector<Box> parts;
  for (Box box : boxes) {
    bool is_touched = true;
    for (std::size_t i = 0; i < rank; ++i) {
      const int64_t origin = position[i] * chunk[i];
      const int64_t begin = std::max(box.begin[i], origin),
                    end = std::min(box.begin[i] + box.size[i], origin + chunk[i]);
      is_touched = is_touched && begin < end;
      box.offset += (begin - box.begin[i]) * strides[i];
      box.begin[i] = begin - origin;
      box.size[i] = end - begin;
    }
    if (is_touched) parts.push_back(box);
  }
  return parts;
}

/// Calls action(position, parts of boxes) for every chunk that boxes touch.
void for_each_chunk(std::size_t rank,
                    const Extent& chunk,
                    const std::vector<Box>& boxes,
                    const Extent& strides,
                    const auto& action) {
  if (boxes.empty()) return;
  const Grid grid(rank, chunk, boxes);
  Extent position = grid.first;
  for (;;) {
    const std::vector<Box> parts = clip(boxes, rank, chunk, position, strides);
    if (!parts.empty()) action(position, parts);
    std::size_t i = rank;
    while (i > 0 && ++position[i - 1] > grid.last[i - 1]) {
      --i;
      position[i] = grid.first[i];
    }
    if (i == 0) return;
  }
}

/// The number of a position in a grid of `counts`, in C order.
inline std::size_t number_of(const Extent& position, const Extent& counts, std::size_t rank) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < rank; ++i)
    number = number * static_cast<std::size_t>(counts[i]) + static_cast<std::size_t>(position[i]);
  return number;
}

/// Calls action(place, size) for the parts of a box on a grid that begins at 0.
void for_each_step(const std::array<int64_t, 4>& begin,
                   const std::array<int64_t, 4>& end,
                   const std::array<int64_t, 4>& step,
                   const auto& action) {
  std::array<int64_t, 4> at = begin, size{};
  for (;;) {
    for (std::size_t i = 0; i < 4; ++i)
      size[i] = std::min((at[i] / step[i] + 1) * step[i], end[i]) - at[i];
    action(at, size);
    std::size_t i = 4;
    while (i > 0 && (at[i - 1] += size[i - 1]) >= end[i - 1]) {
      --i;
      at[i] = begin[i];
    }
    if (i == 0) return;
  }
}

}  // namespace cytra::io
