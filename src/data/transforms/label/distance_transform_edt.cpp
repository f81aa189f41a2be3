// DistanceTransformEDTd: how far each voxel of the foreground is from the background. Source:
// monai.transforms.DistanceTransformEDTd.
#include "data/sample/per_key.h"
#include "ops/labels/distance.h"

namespace cytra::data {
namespace {

struct DistanceTransformEDTd : KeyOptions {
  std::vector<double> sampling;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("sampling",
      sampling,
      "distance between voxels, one number or one per dimension; null: 1",
      1e-12,
      1e12);
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return by_channel(image, true, [&](const at::Tensor& channel) {
      return ops::distance_transform(channel, sampling);
    });
  }
};
CYTRA_REGISTER(Transform, PerKey<DistanceTransformEDTd>, "DistanceTransformEDTd");

}  // namespace
}  // namespace cytra::data
