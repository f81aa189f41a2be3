#pragma once
#include "export/compile.h"
#include "inference/engines/entry.h"

namespace cytra::inference {

/// The windows that a model is traced on. They are not the user's, so that values that the trace
/// wrongly takes for constants show when the engine is compared with eager.
Tensor windows_to_trace(const Tensor& example);

/// Traces and optimises the model for the example's shape, in the precision of the options, with
/// float32 outputs.
exporting::Forward traced(const EngineModel& model,
                          const EngineOptions& options,
                          const Tensor& example);

}  // namespace cytra::inference
