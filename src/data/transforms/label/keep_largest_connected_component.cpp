// KeepLargestConnectedComponentd: clears all but the largest regions of each label. Source:
// monai.transforms.KeepLargestConnectedComponentd.
#include "data/transforms/label/with_keys.h"
#include "ops/labels/operations.h"

namespace cytra::data {

CYTRA_REGISTER(Transform,
               PerKey<WithKeys<ops::KeepLargestConnectedComponent>>,
               "KeepLargestConnectedComponentd");

}  // namespace cytra::data
