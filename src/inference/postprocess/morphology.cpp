// Morphology: dilation, erosion, opening and closing of the foreground, with a disc or ball, or a
// square or cube. Labels stay; added voxels get the nearest label. Source: scipy.ndimage's
// binary_dilation and its other functions.
#include "ops/labels/morphology.h"

#include "inference/postprocess/step.h"
#include "ops/labels/distance.h"
#include "ops/labels/watershed.h"

namespace cytra::inference {
namespace {

class Morphology final : public Postprocess {
 public:
  struct Options {
    std::string operation = "opening", footprint = "ball";
    int64_t radius = 1;
    template <class V>
    void visit(V& v) {
      v("operation", operation, "the operation", {"dilation", "erosion", "opening", "closing"});
      v("radius", radius, "voxels", 1, 1e4);
      v("footprint", footprint, "ball: a disc or ball, box: a square or cube", {"ball", "box"});
    }
  };
  explicit Morphology(const Options& options) : options_(options) {}
  void apply(Result& result) const override {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& labels) {
      const at::Tensor mask = changed(labels.ne(0));
      const at::Tensor kept = labels.masked_fill(mask.logical_not(), 0);
      if (options_.operation == "erosion" || options_.operation == "opening") return kept;
      return ops::watershed(ops::distance_transform(labels.eq(0)), kept, mask, labels.dim());
    });
  }

 private:
  at::Tensor changed(const at::Tensor& mask) const {
    const ops::Footprint footprint{options_.radius, options_.footprint == "ball"};
    if (options_.operation == "dilation") return ops::dilate(mask, footprint);
    if (options_.operation == "erosion") return ops::erode(mask, footprint);
    if (options_.operation == "opening") return ops::dilate(ops::erode(mask, footprint), footprint);
    return ops::erode(ops::dilate(mask, footprint), footprint);
  }
  Options options_;
};
CYTRA_REGISTER(Postprocess, Morphology, "Morphology");

}  // namespace
}  // namespace cytra::inference
