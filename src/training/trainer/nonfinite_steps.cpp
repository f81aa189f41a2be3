#include "training/trainer/nonfinite_steps.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/run_config.h"
#include "io/safetensors.h"
#include "nn/weights.h"
#include "training/precision.h"
#include "training/processes/processes.h"
#include "training/trainer/step.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {

constexpr int64_t kMostInARow = 100;

/// "the loss is nan at step 7 (samples: a, b)".
std::string describe_step(const PendingStep& step, const StepOutcome& outcome) {
  std::vector<std::string> ids = step.group.ids;
  for (const data::Batch& batch : step.group.kept)
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
  const bool is_loss = !std::isfinite(outcome.loss);
  return fmt::format("{} is {} at step {} (samples: {})",
                     is_loss ? "the loss" : "the norm of the gradients",
                     is_loss ? outcome.loss : outcome.grad_norm,
                     step.number,
                     fmt::join(ids, ", "));
}

}  // namespace

NonfiniteSteps::NonfiniteSteps(const TrainerOptions& options,
                               const CheckpointedObjects& objects,
                               const config::Node& config,
                               const Processes& processes)
    : options_(options), objects_(objects), config_(config), processes_(processes) {}

void NonfiniteSteps::leave_out(const PendingStep& step,
                               const StepOutcome& outcome,
                               TrainState& state) {
  state.skipped += 1;
  in_a_row_ += 1;
  const std::string what = describe_step(step, outcome);
  const bool is_too_often = in_a_row_ >= kMostInARow;
  const bool is_overflow =
      precision_of(options_.precision).needs_scaling() && std::isfinite(outcome.loss);
  if ((is_overflow || options_.on_nonfinite == "skip") && !is_too_often) {
    const bool is_news = !is_overflow && in_a_row_ <= 3;
    log::write(
        is_news ? log::Level::warn : log::Level::debug,
        fmt::format("{}: step left out ({} of {} so far)", what, state.skipped, step.number));
    return;
  }
  std::string advice = "try a lower optimizer.lr or trainer.gradient_clip_val=1";
  if (is_too_often)
    advice = fmt::format("the last {} steps were left out; {}", kMostInARow, advice);
  if (options_.on_nonfinite == "dump")
    advice = fmt::format("to repeat the step: checkpoint.ckpt_path={}; {}", dump(step), advice);
  throw DivergedError(what + "; " + advice);
}

/// Writes step_N.safetensors with the step's batches ("0.<key>", ids in the metadata) and
/// step_N.ckpt, a checkpoint that goes on with just this step. Returns the latter's path.
std::string NonfiniteSteps::dump(const PendingStep& step) const {
  config::Node own = config_;
  config::fill_in_environment(own);
  std::string folder = own.get<std::string>("paths.output_dir", ".") + "/nonfinite";
  if (!processes_.is_first()) folder += fmt::format(".rank{}", processes_.place().rank);
  make_folders(folder);
  const std::string stem = fmt::format("{}/step_{}", folder, step.number);
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> metadata;
  for (std::size_t b = 0; b < step.group.kept.size(); ++b) {
    const data::Batch& batch = step.group.kept[b];
    for (const auto& [key, tensor] : batch.tensors)
      tensors[fmt::format("{}.{}", b, key)] = tensor.cpu().contiguous();
    metadata[fmt::format("{}.ids", b)] = join(batch.ids, "\n");
  }
  std::map<std::string, io::TensorView> views;
  for (const auto& [name, tensor] : tensors) views[name] = nn::view_of(tensor);
  io::write_safetensors(stem + ".safetensors", views, metadata);
  write_snapshot(stem + ".ckpt", take_snapshot(objects_, step.group.before, config_));
  return stem + ".ckpt";
}

}  // namespace cytra::training
