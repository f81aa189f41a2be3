#pragma once
#include "cli/program.h"

namespace cytra::cli {

/// Makes every option that names a checkpoint name a file: for a run's folder its best.ckpt (to
/// continue a training, its last.ckpt), for `best` and `last` that of the newest training below
/// paths.log_dir (`train` handles these two itself), for the name of a model at hand its file, for
/// an address what was fetched. What exists is taken before a name. `serve` without a model gets
/// those at hand that make images. Throws: ConfigError where there is none; as fetched_model().
void name_checkpoints(Run& run);

}  // namespace cytra::cli
