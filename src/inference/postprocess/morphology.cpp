// Morphology: dilation, erosion, opening and closing of the foreground, with a disc or ball, or a
// square or cube. Labels stay; added voxels get the nearest label. Source: scipy.ndimage's
// binary_dilation and its other functions.
#include "ops/labels/morphology.h"

#include "inference/postprocess/step.h"
#include "ops/labels/distance.h"
#include "ops/labels/watershed.h"

namespace cytra::inference {
namespace {

struct Morphology {
  std::string operation = "opening", footprint = "ball";
  int64_t radius = 1;
  void visit(auto& v) {
    v("operation", operation, "the operation", {"dilation", "erosion", "opening", "closing"});
    v("radius", radius, "voxels", 1, 1e4);
    v("footprint", footprint, "ball: a disc or ball, box: a square or cube", {"ball", "box"});
  }
  void apply(Result& result) const {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& labels) {
      const at::Tensor mask = changed(labels.ne(0));
      const at::Tensor kept = labels.masked_fill(mask.logical_not(), 0);
      if (operation == "erosion" || operation == "opening") return kept;
      return ops::watershed(ops::distance_transform(labels.eq(0)), kept, mask, labels.dim());
    });
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& /*folder*/) const {
    // The mask reaches as far as both its operations; added voxels are reached by a flood from
    // labels within the radius, on a way within the mask.
    return rows_with_halo(*this, 4 * radius + 2, form, shape);
  }

 private:
  at::Tensor changed(const at::Tensor& mask) const {
    const ops::Footprint shape{radius, footprint == "ball"};
    if (operation == "dilation") return ops::dilate(mask, shape);
    if (operation == "erosion") return ops::erode(mask, shape);
    if (operation == "opening") return ops::dilate(ops::erode(mask, shape), shape);
    return ops::erode(ops::dilate(mask, shape), shape);
  }
};
CYTRA_REGISTER(Postprocess, Step<Morphology>, "Morphology");

}  // namespace
}  // namespace cytra::inference
