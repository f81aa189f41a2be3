// RemoveSmallObjects: clears objects of few voxels. Source: monai.transforms.RemoveSmallObjects.
#include "inference/postprocess/step.h"
#include "ops/labels/remove_small.h"

namespace cytra::inference {
namespace {

struct RemoveSmallObjects : ops::RemoveSmallObjects {
  void apply(Result& result) const {
    expect_labels(result);
    ops::RemoveSmallObjects options = *this;
    if (options.by_measure && options.pixdim.empty()) options.pixdim = spacing_of(result);
    if (options.by_measure && options.pixdim.empty())
      throw DataError("by_measure: the image's spacing is not known, expected pixdim");
    result.values = options(result.values);
  }
};
CYTRA_REGISTER(Postprocess, Step<RemoveSmallObjects>, "RemoveSmallObjects");

}  // namespace
}  // namespace cytra::inference
