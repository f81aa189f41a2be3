// FillHolesd: voxels that a label encloses get that label. Source: monai.transforms.FillHolesd.

#include "data/transforms/label/with_keys.h"
#include "ops/labels/operations.h"

namespace cytra::data {

CYTRA_REGISTER(Transform, PerKey<WithKeys<ops::FillHoles>>, "FillHolesd");

}  // namespace cytra::data
