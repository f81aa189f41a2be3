// RemoveSmallObjects: clears objects of few voxels. Source: monai.transforms.RemoveSmallObjects.
#include "inference/postprocess/step.h"
#include "ops/labels/operations.h"

namespace cytra::inference {
namespace {

/// The distance between voxels along ([Z,]Y,X) in um; empty where it is unknown.
std::vector<double> spacing_of(const Result& result) {
  const auto& spacing = result.geometry.spacing_um;
  const auto dims = static_cast<std::size_t>(result.values.dim()) - 1;
  std::vector<double> known(spacing.end() - static_cast<std::ptrdiff_t>(dims), spacing.end());
  for (const double step : known) {
    if (step <= 0) return {};
  }
  return known;
}

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
