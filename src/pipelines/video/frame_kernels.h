#pragma once
// Loops over the pixels of a frame: 8-bit red, green, blue, (height, width, 3).
#include <cstdint>
#include <vector>

namespace cytra::pipelines {

/// Pixels of a frame as it is stored.
struct FrameBox {
  int64_t x = 0, y = 0, width = 0, height = 0;
  bool operator==(const FrameBox& other) const {
    return x == other.x && y == other.y && width == other.width && height == other.height;
  }
};

/// Brightness of a box, (height, width), 0 to 255. Source: ITU-R BT.601, as OpenCV's RGB2GRAY.
void luma_of(const unsigned char* rgb,
             int64_t frame_width,
             const FrameBox& box,
             unsigned char* luma);

constexpr int64_t kThumbnailStep = 8;  // pixels of a side that become one

/// The means of squares of 8 x 8 pixels, smaller at the right and bottom; luma, 0 to 1.
struct Thumbnail {
  int64_t width = 0, height = 0;
  std::vector<float> luma;  // (height, width)
};
Thumbnail thumbnail_of(const unsigned char* rgb, int64_t frame_width, const FrameBox& box);

/// Outlines and a tint of labels (height, width), 0 for none, in the colours of
/// io/objects/palette.h.
void draw_labels(const int32_t* labels, int64_t height, int64_t width, unsigned char* rgb);
/// A grey picture of the labels: 255 * label / highest; with highest = 0, of objects,
/// 1 + (label - 1) % 255.
void paint_labels(const int32_t* labels, int64_t pixels, int64_t highest, unsigned char* rgb);

}  // namespace cytra::pipelines
