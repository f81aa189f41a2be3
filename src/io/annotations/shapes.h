#pragma once
// Outlines and boxes of annotations, and the names of their images.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "io/annotations/annotations.h"

namespace cytra::io {

/// The part of a path after the last slash of either kind.
std::string last_name(const std::string& path);
/// A rectangle's ring, which begins at its upper left.
Ring rectangle(const std::array<double, 4>& box);
/// The smallest box around an annotation's rings and masks.
std::array<double, 4> box_around(const Annotation& annotation);
/// An ellipse's outline: its axes end at centre + a and centre + b.
Ring ellipse(const std::array<double, 2>& centre,
             const std::array<double, 2>& a,
             const std::array<double, 2>& b);
/// The number as a coordinate. Throws: DataError for a number that no image has.
double coordinate(const std::string& place, double value);
/// Fills a polygon (x, y, x, y, ...) pixel by pixel as pycocotools does. Source: rleFrPoly of
/// cocoapi/common/maskApi.c. Throws: DataError naming `place`.
CocoRle fill_coco_polygon(const std::string& place,
                          const std::vector<double>& corners,
                          int64_t height,
                          int64_t width);

}  // namespace cytra::io
