#pragma once
// Which checkpoint "last" and "best" mean.
#include <string>

namespace cytra::training {

/// The checkpoint that `ckpt_path` "last" or "best" means. "last" is the newest (by step, then
/// time) undamaged one of the runs that wrote to `output_dir` or, where this is a time
/// (2026-01-31_12-00-00), to other times beside it; "best" is the best one that it names. "" when
/// there is none; damaged files are skipped with a warning. What killed runs among these left half
/// written is removed.
/// Throws: DataError when there are checkpoints, but none can be read.
std::string find_checkpoint(const std::string& which, const std::string& output_dir);
/// Throws: ConfigError when one of these runs is still running (base/run_lock.h), since it would
/// then be continued a second time.
void expect_ended(const std::string& output_dir);

}  // namespace cytra::training
