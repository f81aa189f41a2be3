#include "inference/postprocess/step.h"
#include "ops/labels/labels.h"

namespace cytra::inference {

CYTRA_REGISTER(Postprocess, OnLabels<ops::FillHoles>, "FillHoles");

}  // namespace cytra::inference
