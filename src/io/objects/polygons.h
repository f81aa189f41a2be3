#pragma once
// The outlines of labelled objects.
#include <array>
#include <cstdint>
#include <vector>

#include "io/image.h"

namespace cytra::io {

/// The corners (x, y) of a closed line, the first not repeated at the end. Pixel (x, y) of an
/// image covers x to x + 1 and y to y + 1, so a polygon's area is its number of pixels.
using Ring = std::vector<std::array<double, 2>>;

/// A part of an object whose pixels are connected by their sides. Rings are simple; a hole may
/// touch another ring at corners. Holes run the other way round than `outer`.
struct Polygon {
  Ring outer;
  std::vector<Ring> holes;
  int64_t label = 0;
  int64_t z = 0;
};

/// Traces the sides of pixels around every object, where 0 is the background, in the order of
/// their first pixels. `labels`: C = 1, of an integer type. Memory: 9 bytes a pixel of one plane.
std::vector<Polygon> trace_labels(const Image& labels);

/// The signed area: positive for an outer ring of trace_labels(), negative for a hole. Twice the
/// area is exact for corners on the grid.
double signed_area(const Ring& ring);

}  // namespace cytra::io
