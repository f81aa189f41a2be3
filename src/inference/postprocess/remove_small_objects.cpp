// RemoveSmallObjects: clears objects of few voxels. Source: monai.transforms.RemoveSmallObjects.
#include "inference/postprocess/step.h"
#include "ops/labels/remove_small.h"

namespace cytra::inference {
namespace {

class RemoveSmallObjects final : public Postprocess {
 public:
  using Options = ops::RemoveSmallObjects;
  explicit RemoveSmallObjects(const Options& options) : options_(options) {}
  void apply(Result& result) const override {
    expect_labels(result);
    Options options = options_;
    if (options.by_measure && options.pixdim.empty()) options.pixdim = spacing_of(result);
    if (options.by_measure && options.pixdim.empty())
      throw DataError("by_measure: the image's spacing is not known, expected pixdim");
    result.values = options(result.values);
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Postprocess, RemoveSmallObjects, "RemoveSmallObjects");

}  // namespace
}  // namespace cytra::inference
