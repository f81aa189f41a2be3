#pragma once
// Decides where a training begins: anew, or where a checkpoint ended.
#include <string>

#include "app/setup/train_config.h"
#include "cli/program.h"

namespace cytra::app {

/// The checkpoint to begin with, or "": what ckpt_path names ("last" and "best" of earlier runs
/// with this one's name); with autoresume the last of these, if any. Throws: ConfigError when
/// there is none of that name, or one of these runs still works; as find_checkpoint().
std::string checkpoint_of(const CheckpointOptions& options, const cli::Run& run);

/// Fits a checkpoint's place in its epoch, which counts batches of each process, to this run; the
/// order of images follows from the seed. Warns of what differs from the earlier run.
void fit_position(training::TrainState& state,
                  const std::string& checkpoint,
                  int64_t batch_size,
                  int64_t processes,
                  const TrainConfig& config);

}  // namespace cytra::app
