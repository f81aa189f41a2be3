#pragma once
// Measures training steps.
#include "app/benchmark/workload.h"
#include "nn/flop_counter.h"

namespace cytra::app {

/// Prepares training steps on random images and targets: forward, loss, backward, clipping,
/// update. Its results are the losses of the first steps.
Ready prepare_training(const Workload& workload, const Variant& variant, int64_t batch);
/// Applies performance.forbid_transfers in steps of its own, so that watching does not slow the
/// timed steps. Throws: ConfigError for a step that waits, where the option is "error".
void watch_training(const Workload& workload, const Variant& variant, int64_t batch);

/// Counts the FLOPs of a training step's forward and backward pass, without what gradient
/// checkpointing computes again.
nn::Flops count_training(const Workload& workload, int64_t batch);

}  // namespace cytra::app
