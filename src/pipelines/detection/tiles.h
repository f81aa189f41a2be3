#pragma once
// The windows that a large image is searched by, and the objects of the whole out of theirs.
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

/// How far from where it cuts an image of this size the tile holds a box of the image: pixels,
/// below 0 where it cuts the box, infinite where the image ends there, too.
float clearance(const Tile& tile, const Detection& box, int64_t height, int64_t width);
/// A box with less may be cut.
constexpr float kLeastClearance = 2;

/// `found`: of each tile, in its pixels. Where there are several, an object is taken from a tile
/// that sees the whole of it. One that none does, as it is larger than the overlap, is put together
/// from its parts. Returns them in the image's pixels, by descending score, after non-maximum
/// suppression.
std::vector<Detection> join_tiles(const std::vector<Tile>& tiles,
                                  std::vector<std::vector<Detection>> found,
                                  double iou_threshold);

}  // namespace cytra::pipelines
