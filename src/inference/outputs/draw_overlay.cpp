#include "inference/outputs/draw_overlay.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "io/objects/palette.h"

namespace cytra::inference {
namespace {

constexpr int64_t kMostSamples = 1 << 20;  // enough for a percentile
constexpr int64_t kLongest = 2048;         // side of a picture

struct Range {
  float low, scale;
};
Range percentile_range(const at::Tensor& plane) {  // (C,H,W); the scale is to 0..255
  const at::Tensor values = plane.flatten();
  const at::Tensor sorted =
      std::get<0>(values.slice(0, 0, values.numel(), 1 + values.numel() / kMostSamples).sort());
  const auto at_share = [&](double share) {
    return sorted[static_cast<int64_t>(share * static_cast<double>(sorted.numel() - 1))]
        .item<double>();
  };
  const double low = at_share(0.01), high = at_share(0.998);
  return {static_cast<float>(low), static_cast<float>(255 / std::max(high - low, 1e-12))};
}

}  // namespace

at::Tensor shown_channels(const at::Tensor& image) {
  return image.size(0) == 3 ? image : image.narrow(0, 0, 1);
}

io::Image draw_overlay(const at::Tensor& image, const at::Tensor& mask) {
  at::Tensor planes = shown_channels(image).to(at::kCPU, at::kFloat),
             labels = mask.to(at::kCPU, at::kInt);  // ([D,]H,W)
  if (labels.dim() == 3) {
    const auto plane = labels.ne(0).sum(at::IntArrayRef{1, 2}).argmax().item<int64_t>();
    planes = planes.select(1, plane);
    labels = labels[plane];
  }
  const int64_t step = (std::max(labels.size(0), labels.size(1)) + kLongest - 1) / kLongest;
  if (step > 1) {
    planes = at::avg_pool2d(planes, step, step, 0, true);
    labels = labels.slice(0, 0, std::nullopt, step).slice(1, 0, std::nullopt, step);
  }
  const Range range = percentile_range(planes);  // of all channels: colours keep their hue
  planes = planes.expand({3, -1, -1}).contiguous();
  labels = labels.contiguous();
  const int64_t height = labels.size(0), width = labels.size(1);
  const float* light = planes.const_data_ptr<float>();
  const int32_t* label = labels.const_data_ptr<int32_t>();
  io::Image picture;
  picture.shape = {3, 1, height, width};
  picture.pixels.resize(static_cast<std::size_t>(3 * height * width));
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t i = y * width + x;
      const int32_t own = label[i];
      const bool is_edge =
          own != 0 &&
          ((x > 0 && label[i - 1] != own) || (x + 1 < width && label[i + 1] != own) ||
           (y > 0 && label[i - width] != own) || (y + 1 < height && label[i + width] != own));
      const float share = own == 0 ? 0.0F : is_edge ? 0.9F : 0.15F;
      for (int64_t c = 0; c < 3; ++c) {
        const float shade =
            std::clamp((light[c * height * width + i] - range.low) * range.scale, 0.0F, 255.0F);
        const float colour = own == 0 ? 0.0F : io::label_colour(own)[c];
        picture.pixels[static_cast<std::size_t>(c * height * width + i)] =
            static_cast<unsigned char>((1 - share) * shade + share * colour + 0.5F);
      }
    }
  }
  return picture;
}

}  // namespace cytra::inference
