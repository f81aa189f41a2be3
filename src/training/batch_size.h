#pragma once
#include <cstdint>
#include <optional>

#include "data/loader/batch.h"
#include "training/precision.h"
#include "training/task.h"

namespace cytra::training {

/// The batch, `times` times over.
data::Batch repeated(data::Batch batch, int64_t times);
/// A forward and backward pass, whose gradients add to those there are.
void run_pass(Task& task,
              const data::Batch& batch,
              const Precision& precision,
              c10::Device device,
              bool detects_anomaly = false);

/// Chooses the batch size for `data.batch_size: AUTO`. Runs forward and backward passes with 1, 2,
/// 4, ... times the images of `one` (on the CPU, page-locked or not) until they no longer fit or
/// take as long per image, each in turn with the best so far, and returns the largest that was a
/// gain (perf/measure.h); at most `most`. On a CPU it stops at half of the memory that is free, and
/// anywhere at `budget` bytes of the device's memory (of the process, on a CPU). Throws:
/// ConfigError when a batch of `one` takes more than that.
/// Weights, buffers and generators are left as they were. Follows: lightning's
/// Tuner.scale_batch_size(mode="power"), which takes the largest that fits.
int64_t find_batch_size(Task& task,
                        const data::Batch& one,
                        const Precision& precision,
                        int64_t most,
                        std::optional<int64_t> budget = {});

}  // namespace cytra::training
