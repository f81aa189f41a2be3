#pragma once
// What is measured of a model.
#include <string>

#include "app/benchmark/workload.h"
#include "nn/flop_counter.h"

namespace cytra::app {

/// Prepares the model's pass on random images. Its results are the model's outputs.
Ready prepare_inference(const Workload& workload, const Variant& variant, int64_t batch);
/// Counts the FLOPs of a pass.
nn::Flops count_inference(const Workload& workload, int64_t batch);

/// Prepares training steps on random images and targets: forward, loss, backward, clipping,
/// update. Its results are the losses of the first steps.
Ready prepare_training(const Workload& workload, const Variant& variant, int64_t batch);
/// Applies performance.forbid_transfers in steps of its own, so that watching does not slow the
/// timed steps. Throws: ConfigError for a step that waits, where the option is "error".
void watch_training(const Workload& workload, const Variant& variant, int64_t batch);
/// Counts the FLOPs of a training step's forward and backward pass, without what gradient
/// checkpointing computes again.
nn::Flops count_training(const Workload& workload, int64_t batch);

/// The part `transfers` of a report: for a batch's images (`to_device`) and outputs (`to_host`),
/// `bytes`, and the median times of a copy from and to page-locked (`pinned_ms`) and other memory
/// (`pageable_ms`). Null where the device computes in the host's memory.
config::Node measure_transfers(const Workload& workload,
                               int64_t batch,
                               const perf::Repeats& repeats);
/// The part `transfers` of a report as a table for a terminal; "" where it has none.
std::string transfer_table(const config::Node& report);

}  // namespace cytra::app
