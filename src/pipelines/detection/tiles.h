#pragma once
// The windows in which a large image is searched, and the objects of the whole image from theirs.
#include <cstdint>
#include <vector>

#include "pipelines/detection/detector.h"

namespace cytra::pipelines {

/// Pixels y0 ... y1 - 1, x0 ... x1 - 1 of an image.
struct Tile {
  int64_t y0, x0, y1, x1;
  at::Tensor of(const at::Tensor& image) const { return image.slice(-2, y0, y1).slice(-1, x0, x1); }
};

/// The tiles by options.roi_size and overlap, within the image; one where the image is no larger.
/// Throws: ConfigError.
std::vector<Tile> tiles_of(int64_t height, int64_t width, const DetectorOptions& options);

/// The distance, in pixels, of a box from the sides where the tile cuts an image of this size:
/// below 0 where a side cuts the box, infinite where the image ends there, too.
float clearance(const Tile& tile, const Detection& box, int64_t height, int64_t width);
/// A box with less may be cut.
constexpr float kLeastClearance = 2;

/// `found`: of each tile, in its pixels. Where there are several, an object is taken from a tile
/// that sees the whole of it. An object that is larger than the overlap, so that no tile sees it
/// whole, is joined from its parts. Returns them in the image's pixels, by descending score, after
/// non-maximum suppression.
std::vector<Detection> join_tiles(const std::vector<Tile>& tiles,
                                  std::vector<std::vector<Detection>> found,
                                  double iou_threshold);

}  // namespace cytra::pipelines
