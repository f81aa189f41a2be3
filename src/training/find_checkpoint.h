#pragma once
// Which checkpoint "last" and "best" mean.
#include <string>

namespace cytra::training {

/// What `ckpt_path` "last" or "best" means: the newest (by step, then time) whole checkpoint of the
/// runs that wrote to `output_dir` or, where that is a time (2026-01-31_12-00-00), to other times
/// beside it; the best one which that names. "" when there is none; damaged files are passed over
/// with a warning. What killed ones of these runs left half written is removed.
/// Throws: DataError when there are checkpoints, but none can be read.
std::string find_checkpoint(const std::string& which, const std::string& output_dir);
/// Throws: ConfigError when one of these runs is at work (base/run_lock.h), which would then be
/// taken up a second time.
void expect_ended(const std::string& output_dir);

}  // namespace cytra::training
