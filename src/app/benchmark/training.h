#pragma once
// Training steps, measured.
#include "app/benchmark/subject.h"
#include "nn/flop_counter.h"

namespace cytra::app {

/// Training steps on random images and targets: forward, loss, backward, clipping, update. Results:
/// the losses of the first steps.
Ready prepare_training(const Subject& subject, const Variant& variant, int64_t batch);
/// Does what performance.forbid_transfers says in steps of their own, so that watching costs the
/// timed ones nothing. Throws: ConfigError for a step that waits, where it says error.
void watch_training(const Subject& subject, const Variant& variant, int64_t batch);

/// FLOPs of a training step's forward pass with what its backward pass will take; without what
/// gradient checkpointing computes again.
nn::Flops count_training(const Subject& subject, int64_t batch);

}  // namespace cytra::app
