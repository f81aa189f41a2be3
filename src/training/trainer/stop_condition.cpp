#include "training/trainer/stop_condition.h"

#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "base/signals.h"
#include "training/callback.h"
#include "training/processes/processes.h"
#include "training/trainer_options.h"

namespace cytra::training {

StopCondition::StopCondition(const TrainerOptions& options, Processes& processes)
    : options_(options), processes_(processes) {}

void StopCondition::start_clock(double seconds_before) {
  stopwatch_ = {};
  seconds_before_ = seconds_before;
}

double StopCondition::seconds() const {
  return seconds_before_ + stopwatch_.seconds();
}

StopCondition::Reasons StopCondition::own_reasons() const {
  const double limit = options_.max_seconds;
  const bool is_late = limit >= 0 && seconds() + std::min(kept_, limit / 2) >= limit;
  return {signal_received(), is_late, is_asked_};
}

bool StopCondition::is_late() const {
  return options_.max_seconds >= 0 && seconds() >= options_.max_seconds;
}

bool StopCondition::agree(bool wants_to_save) {
  if (processes_.is_alone()) return wants_to_save;
  constexpr std::size_t kCount = kEndSignals.size();
  const Reasons own = own_reasons();
  std::array<double, kCount + 3> all{};
  for (std::size_t s = 0; s < kCount; ++s) all[s] = own.signal == kEndSignals[s] ? 1 : 0;
  all[kCount] = own.is_late ? 1 : 0;
  all[kCount + 1] = own.is_asked ? 1 : 0;
  all[kCount + 2] = wants_to_save ? 1 : 0;
  const at::Tensor votes = at::tensor(all, at::kDouble);
  processes_.sum({votes});
  const double* sums = votes.const_data_ptr<double>();
  for (std::size_t s = 0; s < kCount && agreed_.signal == 0; ++s) {
    if (sums[s] > 0) agreed_.signal = kEndSignals[s];
  }
  agreed_.is_late = sums[kCount] > 0;
  agreed_.is_asked = sums[kCount + 1] > 0;
  return sums[kCount + 2] > 0;
}

bool StopCondition::is_met(const TrainState& state) const {
  const Reasons reasons = processes_.is_alone() ? own_reasons() : agreed_;
  if (reasons.signal != 0 || reasons.is_late) return true;
  if (options_.max_steps >= 0 && state.step >= options_.max_steps) return true;
  return reasons.is_asked && state.epoch >= options_.min_epochs && state.step >= options_.min_steps;
}

int StopCondition::signal() const {
  return processes_.is_alone() ? signal_received() : agreed_.signal;
}

bool StopCondition::is_interrupted() const {
  return signal() != 0 || processes_.others_signal() != 0;
}

}  // namespace cytra::training
