// The operations of ops/labels/ as steps: FlowsToLabels and StarsToLabels make objects from flows,
// as cellpose/dynamics.py, and from distances along rays, as stardist/nms.py.
#include "inference/postprocess/step.h"
#include "ops/labels/flow_labels.h"
#include "ops/labels/operations.h"
#include "ops/labels/star_labels.h"

namespace cytra::inference {

CYTRA_REGISTER(Postprocess, Step<OnLabels<ops::FillHoles>>, "FillHoles");
CYTRA_REGISTER(Postprocess,
               Step<OnLabels<ops::KeepLargestConnectedComponent>>,
               "KeepLargestConnectedComponent");
CYTRA_REGISTER(Postprocess, Step<ToLabels<ops::FlowsToLabels>>, "FlowsToLabels");
CYTRA_REGISTER(Postprocess, Step<ToLabels<ops::StarsToLabels>>, "StarsToLabels");

}  // namespace cytra::inference
