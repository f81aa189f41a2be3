// Part of inference/outputs/draw_overlay.h: a heat map over an image.
#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>

#include "inference/outputs/draw_overlay.h"

namespace cytra::inference {
namespace {

/// (...) from its lowest 1 % to its highest 0.2 % as 0 to 1.
at::Tensor stretched(const at::Tensor& plane) {
  const at::Tensor sorted = std::get<0>(plane.flatten().sort());
  const auto at_share = [&](double share) {
    return sorted[static_cast<int64_t>(share * static_cast<double>(sorted.numel() - 1))]
        .item<double>();
  };
  const double low = at_share(0.01), high = at_share(0.998);
  return ((plane - low) / std::max(high - low, 1e-12)).clamp(0, 1);
}

}  // namespace

io::Image draw_heat(const at::Tensor& image, const at::Tensor& heat) {
  constexpr double kMostShare = 0.6;  // of the heat's colour, where it is largest
  at::Tensor planes = shown_channels(image).to(at::kCPU, at::kFloat);
  const at::Tensor whole = heat.to(at::kCPU, at::kFloat).unsqueeze(0).unsqueeze(0);
  const at::IntArrayRef sides = planes.sizes().slice(1);
  at::Tensor warmth = heat.dim() == 3 ? at::upsample_trilinear3d(whole, sides, false)[0][0]
                                      : at::upsample_bilinear2d(whole, sides, false)[0][0];
  if (heat.dim() == 3) {
    const auto plane = warmth.amax({1, 2}).argmax().item<int64_t>();
    planes = planes.select(1, plane);
    warmth = warmth[plane];
  }
  warmth = warmth / warmth.max().clamp_min(1e-12);
  const at::Tensor colour = at::stack({warmth * 3, warmth * 3 - 1, warmth * 3 - 2}).clamp(0, 1);
  const at::Tensor share = warmth * kMostShare;
  const at::Tensor pixels =
      (((1 - share) * stretched(planes) + share * colour) * 255 + 0.5).to(at::kByte).contiguous();
  io::Image picture;
  picture.shape = {3, 1, pixels.size(1), pixels.size(2)};
  picture.pixels.resize(static_cast<std::size_t>(pixels.numel()));
  std::memcpy(picture.pixels.data(), pixels.const_data_ptr(), picture.pixels.size());
  return picture;
}

}  // namespace cytra::inference
