// FlowsToLabels: makes objects from flows. Source: cellpose/dynamics.py.
#include "inference/postprocess/step.h"
#include "ops/labels/flow_labels.h"

namespace cytra::inference {

CYTRA_REGISTER(Postprocess, ToLabels<ops::FlowsToLabels>, "FlowsToLabels");

}  // namespace cytra::inference
