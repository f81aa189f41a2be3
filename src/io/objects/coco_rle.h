#pragma once
// Masks as COCO's run lengths, bit for bit those of pycocotools. Source: cocoapi/common/maskApi.c.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cytra::io {

/// A mask column by column: so many pixels outside, so many inside, outside ... The first number
/// may be 0; their sum is height x width.
struct CocoRle {
  int64_t height = 0, width = 0;
  std::vector<uint32_t> counts;

  /// Pixels inside.
  int64_t area() const;
  /// x, y, width, height of the pixels inside, as COCO's bbox; all 0 for none.
  std::array<int64_t, 4> box() const;
  /// Sets the pixels inside, of an image of this size, row by row.
  void paint(uint16_t value, uint16_t* pixels) const;
  /// The same in an image of this size, its upper left at (top,left).
  CocoRle placed(int64_t top, int64_t left, int64_t rows, int64_t columns) const;
  /// COCO's "counts" as text.
  std::string text() const;
};

/// `mask`: row by row, other than 0 inside. Throws: DataError for more pixels than a count holds
/// (2^32).
CocoRle encode_rle(const unsigned char* mask, int64_t height, int64_t width);
/// The reverse of CocoRle::text(). Throws: DataError for a text that is none, or of another number
/// of pixels.
CocoRle parse_rle(std::string_view text, int64_t height, int64_t width);

}  // namespace cytra::io
