#pragma once
// Images of any size in the square that Segment Anything's networks take.
// Source: segment_anything/utils/transforms.py (ResizeLongestSide), modeling/sam.py.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::nn {

/// Where an image lies in the square: at its upper left; the rest is padding.
struct Placement {
  int64_t height = 0, width = 0;                // pixels of the image itself
  int64_t scaled_height = 0, scaled_width = 0;  // pixels of it in the square

  /// (B,4) x0 y0 x1 y1 in the image's pixels, x1 and y1 exclusive -> float32 in the square's.
  at::Tensor boxes(const at::Tensor& boxes) const;
};

/// The place of an image whose long side becomes `side`, the other one in proportion. Throws:
/// DataError for no pixels.
Placement place_in_square(int64_t height, int64_t width, int64_t side);

/// How pixels become a network's input, in each of three channels: (pixel - mean) / std, where
/// values that are not bytes are stretched to 0 ... 255 before (the image's smallest and largest).
/// Empty: with the channel's own mean and deviation.
struct PixelScale {
  std::vector<double> mean, std;
};
inline const PixelScale kSamPixels{{123.675, 116.28, 103.53}, {58.395, 57.12, 57.375}};

struct SquareImage {
  at::Tensor image;  // (3,S,S) float32, on the CPU
  Placement placement;
};

/// image: (C,H,W) of any size and number type. One channel becomes three equal ones; of two
/// channels the third becomes 0; those beyond three are left out. Scaling is linear and
/// antialiased; the padding, on the right or below, is 0.
/// Throws: DataError for other dimensions, and no pixels.
SquareImage square_image(const at::Tensor& image, int64_t side, const PixelScale& pixels);

/// labels: (H,W) -> (S,S): the nearest of each pixel, 0 in the padding.
at::Tensor square_labels(const at::Tensor& labels, const Placement& placement, int64_t side);

/// logits: (B,h,w) of the whole square -> (B,H,W) of the image, linear, in SAM's two steps.
at::Tensor upscale_masks(const at::Tensor& logits, const Placement& placement, int64_t side);

}  // namespace cytra::nn
