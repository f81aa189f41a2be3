#include "pipelines/video/frame_kernels.h"

#include <algorithm>

#include "io/objects/palette.h"

namespace cytra::pipelines {
namespace {

/// 0.299 R + 0.587 G + 0.114 B in 14 bits.
inline unsigned luma_at(const unsigned char* pixel) {
  return (4899U * pixel[0] + 9617U * pixel[1] + 1868U * pixel[2] + 8192U) >> 14;
}

}  // namespace

void luma_of(const unsigned char* rgb,
             int64_t frame_width,
             const FrameBox& box,
             unsigned char* luma) {
  for (int64_t y = 0; y < box.height; ++y) {
    const unsigned char* row = rgb + 3 * ((box.y + y) * frame_width + box.x);
    for (int64_t x = 0; x < box.width; ++x)
      luma[y * box.width + x] = static_cast<unsigned char>(luma_at(row + 3 * x));
  }
}

Thumbnail thumbnail_of(const unsigned char* rgb, int64_t frame_width, const FrameBox& box) {
  constexpr int64_t step = kThumbnailStep;
  Thumbnail small;
  small.width = (box.width + step - 1) / step;
  small.height = (box.height + step - 1) / step;
  small.luma.resize(static_cast<std::size_t>(small.width * small.height));
  std::vector<unsigned> sums(static_cast<std::size_t>(small.width));
  for (int64_t row = 0; row < small.height; ++row) {
    std::ranges::fill(sums, 0U);
    const int64_t lines = std::min(step, box.height - row * step);
    for (int64_t line = 0; line < lines; ++line) {
      const unsigned char* pixels = rgb + 3 * ((box.y + row * step + line) * frame_width + box.x);
      for (int64_t x = 0; x < box.width; ++x)
        sums[static_cast<std::size_t>(x / step)] += luma_at(pixels + 3 * x);
    }
    for (int64_t column = 0; column < small.width; ++column) {
      const int64_t count = lines * std::min(step, box.width - column * step);
      small.luma[static_cast<std::size_t>(row * small.width + column)] =
          static_cast<float>(sums[static_cast<std::size_t>(column)]) /
          (255.0F * static_cast<float>(count));
    }
  }
  return small;
}

void draw_labels(const int32_t* labels, int64_t height, int64_t width, unsigned char* rgb) {
  constexpr unsigned kEdge = 230,
                     kInside = 38;  // shares of 256, those of inference/outputs/draw_overlay.h
  for (int64_t y = 0; y < height; ++y) {
    const int32_t* row = labels + y * width;
    for (int64_t x = 0; x < width; ++x) {
      const int32_t own = row[x];
      if (own == 0) continue;
      const bool is_edge = (x > 0 && row[x - 1] != own) || (x + 1 < width && row[x + 1] != own) ||
                           (y > 0 && row[x - width] != own) ||
                           (y + 1 < height && row[x + width] != own);
      const unsigned share = is_edge ? kEdge : kInside;
      const auto& colour = io::label_colour(own);
      unsigned char* pixel = rgb + 3 * (y * width + x);
      for (std::size_t c = 0; c < 3; ++c) {
        pixel[c] =
            static_cast<unsigned char>(((256 - share) * pixel[c] + share * colour[c] + 128) >> 8);
      }
    }
  }
}

void paint_labels(const int32_t* labels, int64_t pixels, int64_t highest, unsigned char* rgb) {
  for (int64_t i = 0; i < pixels; ++i) {
    const int64_t label = labels[i];
    const int64_t grey = label == 0     ? 0
                         : highest == 0 ? 1 + (label - 1) % 255
                                        : std::clamp<int64_t>(255 * label / highest, 1, 255);
    std::fill_n(rgb + 3 * i, 3, static_cast<unsigned char>(grey));
  }
}

}  // namespace cytra::pipelines
