#include "app/train/resume.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "config/run_config.h"
#include "nn/weights.h"
#include "training/find_checkpoint.h"

namespace cytra::app {

using config::Node;

std::string checkpoint_of(const CheckpointOptions& options, const cli::Run& run) {
  const std::string ckpt_path = options.ckpt_path.value_or("");
  const bool is_named = ckpt_path == "last" || ckpt_path == "best";
  if (!is_named && (!ckpt_path.empty() || !options.autoresume)) return ckpt_path;
  const std::string output = config::output_dir(run.composed);
  if (!is_named) training::expect_ended(output);
  const std::string found = training::find_checkpoint(is_named ? ckpt_path : "last", output);
  if (found.empty() && is_named) {
    throw ConfigError(
        "checkpoint.ckpt_path={}: no checkpoint of an earlier run with this name (looked for {})",
        ckpt_path,
        output + "/checkpoints/*.ckpt");
  }
  return found;
}

void fit_position(training::TrainState& state,
                  const std::string& checkpoint,
                  int64_t batch_size,
                  int64_t processes,
                  const TrainConfig& config) {
  const Node before = nn::checkpoint_config(checkpoint);
  const int64_t was_seed = before.get<int64_t>("seed", 0), seed = config.seed.value_or(0);
  if (was_seed != seed) {
    log::warn("{}: trained with seed {}, now {}: images come in another order",
              checkpoint,
              was_seed,
              seed);
  }
  const auto was = before.get<std::string>("optimizer._target_", ""),
             now = config.optimizer.get<std::string>("_target_");
  if (config::own_name(was) != config::own_name(now)) {
    log::warn("{}: trained with {}, now {}, which takes over what is kept under the same names",
              checkpoint,
              was,
              now);
  }
  const int64_t size = before.get<int64_t>("data.batch_size", 1);
  const int64_t before_all = size * state.processes, now_all = batch_size * processes;
  if (state.batch == 0 || before_all == now_all) return;
  const int64_t images = state.batch * before_all;
  state.batch = images / now_all;
  const auto several = [](int64_t count) {
    return count == 1 ? "" : fmt::format(" in {} processes", count);
  };
  log::warn(
      "{}: after {} images of epoch {} with data.batch_size={}{}, now {}{}: {} images are seen "
      "again",
      checkpoint,
      images,
      state.epoch,
      size,
      several(state.processes),
      batch_size,
      several(processes),
      images - state.batch * now_all);
}

}  // namespace cytra::app
