#pragma once
// The windows in which a large image is searched, and the objects of the whole image from theirs.
#include <cstdint>
#include <vector>

#include "pipelines/detection/detector.h"

namespace cytra::pipelines {

/// A part of an image: its first pixels along [Z,]Y,X, and the ones behind its last.
struct Tile {
  std::vector<int64_t> first, last;
  std::vector<int64_t> size() const;
  /// image: (...,[D,]H,W).
  at::Tensor of(const at::Tensor& image) const;
};

/// The tiles by options.roi_size and overlap, within an image of `size` ([D,]H,W); one where the
/// image is no larger. Throws: ConfigError.
std::vector<Tile> tiles_of(const std::vector<int64_t>& size, const DetectorOptions& options);

/// How far from where it cuts an image of this size the tile holds a box of the image: pixels,
/// below 0 where it cuts the box, infinite where the image ends there, too. corners: of one box, as
/// in ops::Boxes.
float clearance(const Tile& tile, const float* corners, const std::vector<int64_t>& size);
/// A box with less may be cut.
constexpr float kLeastClearance = 2;

/// `found`: of each tile, in its pixels. Where there are several, an object is taken from a tile
/// that sees the whole of it. One that none does, as it is larger than the overlap, is put together
/// from its parts. Returns them in the image's pixels, by descending score, after non-maximum
/// suppression.
ops::Boxes join_tiles(const std::vector<Tile>& tiles,
                      const std::vector<ops::Boxes>& found,
                      double iou_threshold);

}  // namespace cytra::pipelines
