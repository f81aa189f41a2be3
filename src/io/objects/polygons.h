#pragma once
// The outlines of labelled objects.
#include <array>
#include <cstdint>
#include <vector>

#include "io/image.h"

namespace cytra::io {

/// Corners (x, y) of a closed line, the first not repeated at the end. Pixel (x, y) of an image
/// covers x to x + 1 and y to y + 1, so a polygon's area is its number of pixels.
using Ring = std::vector<std::array<double, 2>>;

/// A part of an object whose pixels are connected by their sides. Rings are simple; a hole may
/// touch another ring at corners. Holes run the other way round than `outer`.
struct Polygon {
  Ring outer;
  std::vector<Ring> holes;
  int64_t label = 0;
  int64_t z = 0;
};

/// Follows the sides of pixels round every object, 0 being the background; in the order of their
/// first pixels. `labels`: C = 1, of an integer type. Memory: 9 bytes a pixel of one plane.
std::vector<Polygon> trace_labels(const Image& labels);

/// Twice the signed area is exact for corners on the grid: positive of an outer ring as
/// trace_labels() gives it, negative of a hole.
double signed_area(const Ring& ring);

}  // namespace cytra::io
