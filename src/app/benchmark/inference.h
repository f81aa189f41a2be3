#pragma once
// Measures the forward pass of a model.
#include "app/benchmark/workload.h"
#include "nn/flop_counter.h"

namespace cytra::app {

/// Prepares the model's pass on random images. Its results are the model's outputs.
Ready prepare_inference(const Workload& workload, const Variant& variant, int64_t batch);

/// Counts the FLOPs of a pass.
nn::Flops count_inference(const Workload& workload, int64_t batch);

}  // namespace cytra::app
