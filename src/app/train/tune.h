#pragma once
// model.compile_mode=max-autotune: what the configuration leaves open is measured.
#include <c10/core/Device.h>

#include "app/optimize/timed_pass.h"

namespace cytra::app {

/// With the fastest of what is left open: model.channels_last=null; on a GPU
/// performance.enable_cudnn_benchmark, unless trainer.deterministic; on a CPU
/// performance.num_threads=0. Forward and backward pass of the training's first batch are timed in
/// turn with the choice so far; and the validation of its first batch for
/// task.inference_args.sw_batch_size, where that is the default. What is no gain (perf/measure.h)
/// is not chosen. The choices are kept in $XDG_CACHE_HOME/cytra/tuned.json (else ~/.cache) for this
/// device, by its name, task, precision and shapes; a line for each says what was chosen. Those
/// that were kept are timed again: slower ones are dropped with a line, and chosen anew.
/// Nothing that changes the precision of numbers is tried. The configuration itself where nothing
/// is left open, without max-autotune, and with data.batch_size=AUTO. `make`: none: real_passes().
TrainConfig tuned(TrainConfig config, c10::Device device, MakePass make = {});

}  // namespace cytra::app
