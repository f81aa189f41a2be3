// RandSimulateLowResolutiond: reduces the number of voxels and restores it. Source:
// monai.transforms.RandSimulateLowResolutiond.
#include <cmath>

#include "data/sample/per_key.h"
#include "data/sample/resample.h"

namespace cytra::data {
namespace {

struct RandSimulateLowResolutiond : RandKeyOptions {
  std::string downsample_mode = "nearest", upsample_mode = "trilinear";
  std::vector<double> zoom_range{0.5, 1};
  bool align_corners = false;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("downsample_mode", downsample_mode, "interpolation to fewer voxels", spatial::kResizeModes);
    v("upsample_mode",
      upsample_mode,
      "interpolation back to the original size; linear, bilinear and trilinear are the same",
      spatial::kResizeModes);
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
        // A tie is rounded to even, as by numpy.
        const double rounded = std::nearbyint(static_cast<double>(length) * zoom);
        small.push_back(std::max<int64_t>(1, static_cast<int64_t>(rounded)));
      }
      const at::Tensor fewer = spatial::resize(image, small, downsample_mode, align_corners);
      return spatial::resize(fewer, size, upsample_mode, align_corners);
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandSimulateLowResolutiond>, "RandSimulateLowResolutiond");

}  // namespace
}  // namespace cytra::data
