#pragma once
#include "cli/program.h"

namespace cytra::cli {

/// Makes every option that names a checkpoint name a file: for a run's folder its best.ckpt (to
/// continue a training, its last.ckpt), for `best` and `last` that of the newest training below
/// paths.log_dir (`train` handles these two itself), for the name of a model at hand its file. What
/// exists is taken before a name. Throws: ConfigError where there is none.
void name_checkpoints(Run& run);

}  // namespace cytra::cli
