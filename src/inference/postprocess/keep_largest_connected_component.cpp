#include "inference/postprocess/step.h"
#include "ops/labels/keep_largest.h"

namespace cytra::inference {

CYTRA_REGISTER(Postprocess,
               OnLabels<ops::KeepLargestConnectedComponent>,
               "KeepLargestConnectedComponent");

}  // namespace cytra::inference
