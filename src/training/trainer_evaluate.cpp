// The part of the Trainer that uses the weights without training them.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "base/log.h"
#include "base/signals.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "training/feeds.h"
#include "training/processes/processes.h"
#include "training/scheduler.h"
#include "training/step.h"
#include "training/swapped_in.h"
#include "training/trainer.h"
#include "training/trainer_call.h"

namespace cytra::training {
/// After the step that just ended? Then one was due among its batches.
bool Trainer::is_validation_due() const {
  if (state_.validated_at == state_.step) return false;
  const Amount& given = options_.val_check_interval;
  const int64_t batches = context_.batches;
  const auto share = static_cast<int64_t>(given.share * static_cast<double>(batches));
  const int64_t interval = given.count >= 0 ? given.count : std::max<int64_t>(1, share);
  int64_t from = edge_before_, to = state_.batch;
  if (!options_.check_val_every_n_epoch) {
    from += state_.epoch * batches;
    to += state_.epoch * batches;
  } else if ((state_.epoch + 1) % *options_.check_val_every_n_epoch != 0) {
    return false;
  }
  return to / interval > from / interval;
}

void Trainer::sanity_check(Feeds& feeds) {
  const int64_t asked = options_.num_sanity_val_steps;
  const int64_t batches = asked < 0 ? feeds.valid_batches : std::min(asked, feeds.valid_batches);
  if (has_validation_ && asked != 0 && state_.step == 0)
    run_validation(feeds.valid, batches, "val", false);
}

void Trainer::validate(Feeds& feeds) {
  settle();
  const Metrics metrics = run_validation(feeds.valid, feeds.valid_batches, "val", true);
  if (signal() != 0) return;  // of some of the images only
  state_.validated_at = state_.step;
  log(metrics);
  scheduler_.on_metrics(state_.metrics);
  std::string line = fmt::format("epoch {} step {}", state_.epoch, state_.step);
  if (context_.total_steps >= 0) line += fmt::format("/{}", context_.total_steps);
  line += ":";
  for (const auto& [name, value] : metrics) line += fmt::format(" {} {:.4f}", name, value);
  log::info("{}", line);
  call("on_validation_end", [&](Callback& callback) { callback.on_validation_end(context_); });
  carry_out();
}

Metrics Trainer::run_validation(data::DeviceFeed& feed,
                                int64_t batches,
                                const std::string& stage,
                                bool has_callbacks,
                                bool is_as_it_is) {
  RECORD_USER_SCOPE("validation");
  seed_step(state_, processes_.place().rank, device_);  // what a task draws, also when made again
  nn::Model& model = task_.model();
  const bool was_training = model.is_training();
  std::optional<SwappedIn> swapped;
  if (!is_as_it_is) swapped.emplace(callbacks_, task_);
  model.eval();
  {
    const c10::InferenceMode inference(options_.inference_mode);
    const at::NoGradGuard no_grad;
    const Autocast autocast(precision_, device_.type());
    if (has_callbacks)
      call("on_validation_start", [&](Callback& one) { one.on_validation_start(context_); });
    feed.start_epoch(0);
    const auto is_stopped = [this] { return signal() != 0 || processes_.others_signal() != 0; };
    for (int64_t b = 0; b < batches && !is_stopped(); ++b) {
      std::optional<data::Batch> batch = feed.next();
      if (!batch) break;
      cast(*batch, precision_.parameters);
      task_.validation_step(*batch);
      if (progress_) progress_->show_part("validation", b + 1, batches);
      if (!has_callbacks) continue;
      context_.batch = &*batch;
      call("on_validation_batch", [&](Callback& one) { one.on_validation_batch(context_); });
      context_.batch = nullptr;
    }
    processes_.sum(task_.sums());
    agree();  // whether all have seen all of their images
  }
  Metrics metrics;
  for (const auto& [name, value] : task_.validation_end()) metrics[stage + "/" + name] = value;
  model.train(was_training);
  return metrics;
}

Metrics Trainer::evaluate(data::DataLoader& loader,
                          const std::string& stage,
                          const std::string& checkpoint) {
  const bool is_loaded = !checkpoint.empty();
  if (is_loaded) nn::load_weights(checkpoint, task_.model(), true);
  data::DeviceFeed feed(loader, device_);
  Metrics metrics;
  try {
    processes_.guard(
        [&] { metrics = run_validation(feed, loader.size(), stage, false, is_loaded); });
  } catch (const Interrupted& signal) {
    if (!processes_.is_alone()) throw;
    log::warn("{}", signal.what());
  }
  if (signal() == 0) log(metrics);
  return metrics;
}

}  // namespace cytra::training
