#pragma once
// model.compile_mode=max-autotune: what the configuration leaves open is measured.
#include <c10/core/Device.h>

#include "app/train_config.h"

namespace cytra::app {

/// With the fastest of what is left open: model.channels_last=null; on a GPU
/// performance.enable_cudnn_benchmark, unless trainer.deterministic; on a CPU
/// performance.num_threads=0. Forward and backward pass of the training's first batch are timed for
/// each choice, and the choices kept in $XDG_CACHE_HOME/cytra/tuned.json (else ~/.cache) for this
/// device, task, precision and shape of batch; one line says what was chosen. Nothing that changes
/// the precision of numbers is tried. The configuration itself where nothing is left open, without
/// max-autotune, and with data.batch_size=AUTO.
TrainConfig tuned(TrainConfig config, c10::Device device);

}  // namespace cytra::app
