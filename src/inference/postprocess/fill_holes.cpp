#include "ops/labels/fill_holes.h"

#include "inference/postprocess/step.h"

namespace cytra::inference {

CYTRA_REGISTER(Postprocess, OnLabels<ops::FillHoles>, "FillHoles");

}  // namespace cytra::inference
