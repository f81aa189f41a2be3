// FillHolesd: voxels that a label encloses get that label. KeepLargestConnectedComponentd: clears
// all but the largest regions of each label. RemoveSmallObjectsd: clears objects of few voxels.
// Source: monai.transforms, the same names.
#include "ops/labels/operations.h"

#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

/// An operation of ops/labels/ with the keys that it is applied to.
template <class Operation>
struct WithKeys : KeyOptions, Operation {
  void visit(auto& v) {
    KeyOptions::visit(v);
    Operation::visit(v);
  }
};

CYTRA_REGISTER(Transform, PerKey<WithKeys<ops::FillHoles>>, "FillHolesd");
CYTRA_REGISTER(Transform,
               PerKey<WithKeys<ops::KeepLargestConnectedComponent>>,
               "KeepLargestConnectedComponentd");

struct RemoveSmallObjectsd : WithKeys<ops::RemoveSmallObjects> {
  void check() const {
    if (by_measure && pixdim.empty()) throw ConfigError("by_measure: expected pixdim, too");
  }
};
CYTRA_REGISTER(Transform, PerKey<RemoveSmallObjectsd>, "RemoveSmallObjectsd");

}  // namespace
}  // namespace cytra::data
