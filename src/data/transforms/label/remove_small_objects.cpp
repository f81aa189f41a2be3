// RemoveSmallObjectsd: clears objects of few voxels. Source: monai.transforms.RemoveSmallObjectsd.
#include "data/transforms/label/with_keys.h"
#include "ops/labels/operations.h"

namespace cytra::data {
namespace {

struct RemoveSmallObjectsd : WithKeys<ops::RemoveSmallObjects> {
  void check() const {
    if (by_measure && pixdim.empty()) throw ConfigError("by_measure: expected pixdim, too");
  }
};
CYTRA_REGISTER(Transform, PerKey<RemoveSmallObjectsd>, "RemoveSmallObjectsd");

}  // namespace
}  // namespace cytra::data
