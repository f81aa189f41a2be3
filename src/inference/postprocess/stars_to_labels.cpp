// StarsToLabels: makes objects from distances along rays. Source: stardist/nms.py.
#include "inference/postprocess/step.h"
#include "ops/labels/star_labels.h"

namespace cytra::inference {

CYTRA_REGISTER(Postprocess, ToLabels<ops::StarsToLabels>, "StarsToLabels");

}  // namespace cytra::inference
