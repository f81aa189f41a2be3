#pragma once
// model.compile_mode=max-autotune: what the configuration leaves open is measured.
#include <c10/core/Device.h>

#include "app/optimize/timed_pass.h"

namespace cytra::app {

/// Returns the configuration with the fastest values of what is left open:
/// model.channels_last=null; on a GPU performance.enable_cudnn_benchmark, unless
/// trainer.deterministic; on a CPU performance.num_threads=0. Forward and backward pass of the
/// training's first batch are timed in turn with the choice so far. For
/// task.inference_args.sw_batch_size, where it is the default, the validation of its first batch
/// is timed. What is no gain (perf/measure.h) is not chosen. The choices are kept in
/// $XDG_CACHE_HOME/cytra/tuned.json (else ~/.cache) by the device's name, task, precision and
/// shapes; a line for each says what was chosen. Choices that were kept are timed again: slower
/// ones are dropped with a line, and chosen anew.
/// Nothing that changes the precision of numbers is tried. Returns the configuration unchanged
/// where nothing is left open, without max-autotune, and with data.batch_size=AUTO. `make`:
/// real_passes() where empty.
TrainConfig tuned(TrainConfig config, c10::Device device, MakePass make = {});

}  // namespace cytra::app
