#pragma once
// Masks as COCO's run lengths, bit for bit those of pycocotools. Source: cocoapi/common/maskApi.c.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cytra::io {

/// A mask column by column: the numbers of pixels outside, inside, outside ... The first number
/// may be 0; their sum is height x width.
struct CocoRle {
  int64_t height = 0, width = 0;
  std::vector<uint32_t> counts;

  /// The number of pixels inside.
  int64_t area() const;
  /// The box x, y, width, height of the pixels inside, as COCO's bbox; all 0 for none.
  std::array<int64_t, 4> box() const;
  /// Sets the pixels inside, of an image of this size, row by row.
  void paint(uint16_t value, uint16_t* pixels) const;
  /// The mask placed in an image of this size, its upper left at (top,left).
  CocoRle placed(int64_t top, int64_t left, int64_t rows, int64_t columns) const;
  /// The text of COCO's "counts".
  std::string text() const;
};

/// Encodes a mask. `mask`: row by row, not 0 inside. Throws: DataError for more pixels than a
/// count holds (2^32).
CocoRle encode_rle(const unsigned char* mask, int64_t height, int64_t width);
/// Parses the text of CocoRle::text(). Throws: DataError for an invalid text, or another number of
/// pixels.
CocoRle parse_rle(std::string_view text, int64_t height, int64_t width);

}  // namespace cytra::io
