#pragma once
#include "export/compile.h"
#include "inference/engines/entry.h"

namespace cytra::inference {

/// What a model is traced on: no window of the user's, so that what a trace misses and takes for a
/// constant shows when the engine is compared with eager.
Tensor windows_to_trace(const Tensor& example);

/// The model at the precision of the options, outputs float32, traced and optimised for the
/// example's shape.
exporting::Forwards traced(const EngineModel& model,
                           const EngineOptions& options,
                           const Tensor& example);

}  // namespace cytra::inference
