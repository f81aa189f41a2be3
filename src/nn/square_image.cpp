#include "nn/square_image.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "ops/boxes/boxes.h"

namespace cytra::nn {
namespace {

at::Tensor three_channels(const at::Tensor& image) {
  if (image.size(0) == 1) return image.expand({3, -1, -1});
  if (image.size(0) == 2) return at::cat({image, at::zeros_like(image.slice(0, 0, 1))});
  return image.slice(0, 0, 3);
}

/// (3,H,W) of any type -> float32.
at::Tensor scaled_pixels(const at::Tensor& image, const PixelScale& pixels) {
  at::Tensor values = image.to(at::kFloat);
  if (pixels.mean.empty()) {
    const at::Tensor mean = values.mean({1, 2}, true);
    // An image with one value everywhere has no deviation: it becomes 0.
    const at::Tensor deviation = values.std(at::IntArrayRef{1, 2}, /*unbiased=*/false, true);
    return (values - mean) / at::where(deviation.gt(0), deviation, at::ones_like(deviation));
  }
  if (image.scalar_type() != at::kByte) {
    const at::Tensor low = values.min(), range = values.max() - low;
    values = (values - low) * (255 / at::where(range.gt(0), range, at::ones_like(range)));
  }
  const at::Tensor mean = at::tensor(pixels.mean, at::kFloat).view({-1, 1, 1});
  const at::Tensor std = at::tensor(pixels.std, at::kFloat).view({-1, 1, 1});
  return (values - mean) / std;
}

at::Tensor padded_to_square(const at::Tensor& image, int64_t side) {
  return at::constant_pad_nd(image, {0, side - image.size(-1), 0, side - image.size(-2)});
}

}  // namespace

at::Tensor Placement::boxes(const at::Tensor& boxes) const {
  const double across = static_cast<double>(scaled_width) / static_cast<double>(width);
  const double down = static_cast<double>(scaled_height) / static_cast<double>(height);
  return ops::scale_boxes(boxes, {down, across});
}

Placement place_in_square(int64_t height, int64_t width, int64_t side) {
  if (height < 1 || width < 1)
    throw DataError("an image of {}x{} pixels: there is nothing in it", height, width);
  const double scale = static_cast<double>(side) / static_cast<double>(std::max(height, width));
  const auto scaled = [&](int64_t length) {  // a thin image keeps a pixel
    return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(length) * scale + 0.5));
  };
  return {height, width, scaled(height), scaled(width)};
}

SquareImage square_image(const at::Tensor& image, int64_t side, const PixelScale& pixels) {
  if (image.dim() != 3 || image.size(0) < 1) {
    throw DataError("an image of shape ({}), expected channels, height, width",
                    fmt::join(image.sizes(), ","));
  }
  SquareImage square;
  square.placement = place_in_square(image.size(1), image.size(2), side);
  const auto& [height, width, scaled_height, scaled_width] = square.placement;
  at::Tensor values = scaled_pixels(three_channels(image.to(at::kCPU)), pixels);
  if (scaled_height != height || scaled_width != width) {
    values = at::_upsample_bilinear2d_aa(
        values.unsqueeze(0), {scaled_height, scaled_width}, /*align_corners=*/false)[0];
  }
  square.image = padded_to_square(values, side);
  return square;
}

at::Tensor square_labels(const at::Tensor& labels, const Placement& placement, int64_t side) {
  const at::Tensor scaled =
      at::_upsample_nearest_exact2d(labels.to(at::kDouble).unsqueeze(0).unsqueeze(0),
                                    {placement.scaled_height, placement.scaled_width})[0][0];
  return padded_to_square(scaled.to(labels.scalar_type()), side);
}

at::Tensor upscale_masks(const at::Tensor& logits, const Placement& placement, int64_t side) {
  if (logits.size(0) == 0) return logits.new_empty({0, placement.height, placement.width});
  const at::Tensor square = at::upsample_bilinear2d(logits.unsqueeze(1), {side, side}, false);
  const at::Tensor part =
      square.slice(2, 0, placement.scaled_height).slice(3, 0, placement.scaled_width);
  return at::upsample_bilinear2d(part, {placement.height, placement.width}, false).squeeze(1);
}

}  // namespace cytra::nn
