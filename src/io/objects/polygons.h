#pragma once
// The outlines of labelled objects.
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
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

/// Traces the sides of pixels around every object of an image whose rows come in order, where 0 is
/// the background. Memory: the polygons, the runs of pixels of objects that go on, and 9 bytes a
/// pixel of the box of one object.
class LabelTracer {
 public:
  /// Takes the next rows of a plane, `width` labels each. Throws: DataError for an object whose box
  /// has 2^32 pixels or more.
  void add(std::span<const uint32_t> rows, int64_t width);
  /// Ends a plane; the next one may follow.
  void end_plane();
  /// Returns the polygons of all planes that have ended, in the order of their first pixels.
  std::vector<Polygon> take() { return std::move(polygons_); }

 private:
  struct Run {
    int64_t y, begin, end;
  };
  void trace(uint32_t label, const std::vector<Run>& runs);

  std::unordered_map<uint32_t, std::vector<Run>> open_;  // their label first
  std::vector<Polygon> polygons_;
  std::size_t first_ = 0;  // the plane's first polygon
  int64_t y_ = 0, z_ = 0;
};

/// Traces a whole image. `labels`: C = 1, of an integer type.
std::vector<Polygon> trace_labels(const Image& labels);

/// The signed area: positive for an outer ring of trace_labels(), negative for a hole. Twice the
/// area is exact for corners on the grid.
double signed_area(const Ring& ring);

}  // namespace cytra::io
