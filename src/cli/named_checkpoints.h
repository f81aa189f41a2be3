#pragma once
#include "cli/program.h"

namespace cytra::cli {

/// Every option that names a checkpoint names a file from then on: for a run's folder its best.ckpt
/// (to go on with a training, its last.ckpt), for `best` and `last` that of the newest training
/// below paths.log_dir; `train` knows these two itself. Throws: ConfigError where there is none.
void name_checkpoints(Run& run);

}  // namespace cytra::cli
