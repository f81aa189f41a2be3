// RandSimulateLowResolutiond: fewer voxels and back. Source:
// monai.transforms.RandSimulateLowResolutiond.
#include <cmath>

#include <torch/nn/functional/upsampling.h>

#include "data/transforms/per_key.h"

namespace cytra::data {
namespace {

namespace F = torch::nn::functional;

const std::vector<std::string>& modes() {
  static const std::vector<std::string> modes{
      "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"};
  return modes;
}

at::Tensor resize(const at::Tensor& image,
                  const std::vector<int64_t>& size,
                  const std::string& mode,
                  bool align_corners) {
  const bool plane = size.size() == 2;
  F::InterpolateFuncOptions options;
  options.size(size);
  if (mode == "nearest") {
    options.mode(torch::kNearest);
  } else if (mode == "nearest-exact") {
    options.mode(torch::kNearestExact).align_corners(false);  // else torch warns
  } else if (mode == "area") {
    options.mode(torch::kArea);
  } else if (mode == "bicubic") {
    if (!plane) throw DataError("a stack, expected a plane: bicubic is for planes only");
    options.mode(torch::kBicubic).align_corners(align_corners);
  } else if (plane) {
    options.mode(torch::kBilinear).align_corners(align_corners);
  } else {
    options.mode(torch::kTrilinear).align_corners(align_corners);
  }
  return F::interpolate(image.unsqueeze(0), options).squeeze(0);
}

struct RandSimulateLowResolutiond : RandKeyOptions {
  std::string downsample_mode = "nearest", upsample_mode = "trilinear";
  std::vector<double> zoom_range{0.5, 1};
  bool align_corners = false;
  template <class V>
  void visit(V& v) {
    RandKeyOptions::visit(v);
    v("downsample_mode", downsample_mode, "interpolation to fewer voxels", modes());
    v("upsample_mode",
      upsample_mode,
      "back to the size there was; linear, bilinear and trilinear are one",
      modes());
    v("zoom_range", zoom_range, "range of the factor, drawn for each key", 1e-6, 100);
    v("align_corners", align_corners, "corners stay in place, in linear and cubic modes");
    v("device", config::Unused{{"cpu"}}, "transforms run on the CPU");
  }
  void check() const { check_range("zoom_range", zoom_range, false); }

  auto draw(Rng& rng, const at::Tensor&) const {
    return [this, &rng](const at::Tensor& image) {
      const double zoom = Range(zoom_range, 0).draw(rng);
      const std::vector<int64_t> size = image.sizes().slice(1).vec();
      std::vector<int64_t> small;
      for (const int64_t length : size) {
        // To even on a tie, as numpy rounds.
        const double rounded = std::nearbyint(static_cast<double>(length) * zoom);
        small.push_back(std::max<int64_t>(1, static_cast<int64_t>(rounded)));
      }
      return resize(
          resize(image, small, downsample_mode, align_corners), size, upsample_mode, align_corners);
    };
  }
};
const Registered<Transform, RandPerKey<RandSimulateLowResolutiond>> registered(
    "RandSimulateLowResolutiond", __FILE__);

}  // namespace
}  // namespace cytra::data
