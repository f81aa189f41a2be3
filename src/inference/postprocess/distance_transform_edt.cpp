// DistanceTransformEDT: how far each voxel of the foreground is from the background. Source:
// monai.transforms.DistanceTransformEDT.
#include "inference/postprocess/step.h"
#include "ops/labels/distance.h"

namespace cytra::inference {
namespace {

struct DistanceTransformEDT {
  std::vector<double> sampling;
  template <class V>
  void visit(V& v) {
    v("sampling",
      sampling,
      "distance between voxels, one number or one per dimension; null: 1",
      1e-12,
      1e12);
  }
  void apply(Result& result) const {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& channel) {
      return ops::distance_transform(channel, sampling);
    });
    result.is_labels = result.is_objects = false;
  }
};
CYTRA_REGISTER(Postprocess, Step<DistanceTransformEDT>, "DistanceTransformEDT");

}  // namespace
}  // namespace cytra::inference
