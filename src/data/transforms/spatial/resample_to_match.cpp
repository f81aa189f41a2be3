// ResampleToMatchd: brings images to the voxels of another image of the sample, by the places of
// both. Source: monai.transforms.ResampleToMatchd.
#include <utility>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/voxel_axes.h"
#include "data/transforms/spatial/affine_options.h"

namespace cytra::data::spatial {
namespace {

struct ResampleToMatchd : SampleOptions {
  ResampleToMatchd() : SampleOptions("border", /*splines=*/true) {}
  std::string key_dst;
  std::vector<bool> align_corners{false};
  void visit(auto& v) {
    SampleOptions::visit(v);
    v("key_dst", key_dst, "key of the image whose voxel grid all others get", config::required);
    v("align_corners", align_corners, "as torch's grid_sample; one, or one per key");
    v("dtype",
      config::Unused{{"float64", "np.float64", "numpy.float64", "torch.float64"}},
      "computed in float64");
  }
  void check() const {
    SampleOptions::check();
    check_per_key("align_corners", align_corners, *this);
  }

  void operator()(Sample& sample) const {
    const std::string& target = key_dst;
    if (!sample.has(target) && allow_missing_keys) return;
    const std::vector<int64_t> size = sample.size(target);
    const io::Geometry wanted = sample.geometries[target];
    for_each(sample, [&](const at::Tensor& image, std::size_t key, io::Geometry& geometry) {
      if (keys[key] == target) return image;
      if (image.dim() - 1 != std::ssize(size)) {
        throw DataError("{} spatial dimensions, '{}' has {}", image.dim() - 1, target, size.size());
      }
      const io::Geometry given = std::exchange(geometry, wanted);
      return resample_onto(image,
                           given,
                           wanted,
                           size,
                           of_key(mode, key),
                           of_key(padding_mode, key),
                           of_key(align_corners, key));
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<ResampleToMatchd>, "ResampleToMatchd");

}  // namespace
}  // namespace cytra::data::spatial
