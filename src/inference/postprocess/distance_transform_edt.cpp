// DistanceTransformEDT: how far each voxel of the foreground is from the background. Source:
// monai.transforms.DistanceTransformEDT.
#include "inference/postprocess/step.h"
#include "ops/labels/distance.h"

namespace cytra::inference {
namespace {

class DistanceTransformEDT final : public Postprocess {
 public:
  struct Options {
    std::vector<double> sampling;
    template <class V>
    void visit(V& v) {
      v("sampling",
        sampling,
        "distance between voxels, one number or one per dimension; null: 1",
        1e-12,
        1e12);
    }
  };
  explicit DistanceTransformEDT(const Options& options) : options_(options) {}
  void apply(Result& result) const override {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& channel) {
      return ops::distance_transform(channel, options_.sampling);
    });
    result.is_labels = result.is_objects = false;
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Postprocess, DistanceTransformEDT, "DistanceTransformEDT");

}  // namespace
}  // namespace cytra::inference
