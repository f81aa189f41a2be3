// Part of training/trainer/training.h: validations, and tests of a checkpoint.
#include <algorithm>

#include "base/log.h"
#include "base/signals.h"
#include "nn/weights.h"
#include "report/findings.h"
#include "training/scheduler.h"
#include "training/trainer/feeds.h"
#include "training/trainer/training.h"

namespace cytra::training {

/// Validates some batches before the first step, so that errors there show at once.
void Training::sanity_check(Feeds& feeds) {
  const int64_t asked = options_.num_sanity_val_steps;
  const int64_t batches = asked < 0 ? feeds.valid_batches : std::min(asked, feeds.valid_batches);
  if (!plan_.has_validation || asked == 0 || state_.step != 0) return;
  const Stopwatch stopwatch;
  const auto show = [&](const data::Batch&, int64_t done) {
    log_.show_validation(done, batches);
    keep_for_validation(stopwatch, done, feeds.valid_batches);
  };
  log_.show_validation(0, batches);  // the first may take long
  evaluator_.evaluate(feeds.valid, batches, "val", Evaluator::Weights::swapped_in, {show});
}

/// Whether a validation was due among the batches of the step that just ended.
bool Training::is_validation_due() const {
  return plan_.has_validation &&
         training::is_validation_due(options_, state_, plan_.batches, edge_before_);
}

/// Keeps the time of a whole validation free before max_time, as some batches of one took it.
void Training::keep_for_validation(const Stopwatch& stopwatch, int64_t done, int64_t batches) {
  stop_.keep_for_validation(stopwatch.seconds() * static_cast<double>(batches) /
                            static_cast<double>(done));
}

/// Whether max_time ends a validation. The first is always whole, so that the training has a
/// result; processes that train together end none, as each has a clock of its own.
bool Training::leaves_validation() const {
  return state_.validated_at >= 0 && processes_.is_alone() && stop_.is_late();
}

void Training::validate(Feeds& feeds) {
  take_outcome();
  context_.is_last = stop_.is_met(state_);
  bool is_left = false;
  const Stopwatch stopwatch;
  report::Findings findings;
  const Evaluator::Hooks hooks{[&](const data::Batch& batch, int64_t done) {
                                 log_.show_validation(done, feeds.valid_batches);
                                 keep_for_validation(stopwatch, done, feeds.valid_batches);
                                 call(
                                     "on_validation_batch", &Callback::on_validation_batch, &batch);
                               },
                               [&] { call("on_validation_start", &Callback::on_validation_start); },
                               [&] { return is_left = leaves_validation(); },
                               loggers_.empty() ? nullptr : &findings};
  const Metrics metrics = evaluator_.evaluate(
      feeds.valid, feeds.valid_batches, "val", Evaluator::Weights::swapped_in, hooks);
  if (is_left || stop_.signal() != 0) return;  // of some of the images only
  state_.validated_at = state_.step;
  log_.log_validation(metrics, plan_.total_steps);
  for (const auto& logger : loggers_) logger->log_findings(findings, state_.step);
  scheduler_.on_metrics(state_.metrics);
  call("on_validation_end", &Callback::on_validation_end);
  carry_out();
}

Metrics Training::evaluate(data::DataLoader& loader,
                           const std::string& stage,
                           const std::string& checkpoint) {
  auto weights = Evaluator::Weights::swapped_in;
  if (!checkpoint.empty()) {
    nn::load_weights(checkpoint, task_.model());
    weights = Evaluator::Weights::present;
  }
  data::DeviceFeed feed(loader, device_);
  Metrics metrics;
  try {
    processes_.guard(
        [&] { metrics = evaluator_.evaluate(feed, loader.size(), stage, weights, {}); });
  } catch (const Interrupted& signal) {
    if (!processes_.is_alone()) throw;
    log::warn("{}", signal.what());
  }
  if (stop_.signal() == 0) log_.log(metrics);
  return metrics;
}

}  // namespace cytra::training
