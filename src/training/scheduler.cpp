#include "training/scheduler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/checked.h"

namespace cytra::training {

double WarmupOptions::factor(int64_t step) const {
  if (step >= warmup_steps) return 1;
  if (warmup == "constant") return warmup_start_factor;
  double part = static_cast<double>(step) / static_cast<double>(warmup_steps);
  if (warmup == "cosine") part = (1 - std::cos(M_PI * part)) / 2;
  return warmup_start_factor + (1 - warmup_start_factor) * part;
}

Schedule::Schedule(const ScheduleOptions& options)
    : options_(config::checked(options, "scheduler")) {}

Rates Schedule::at(double base_lr, const Position& position) const {
  const bool per_epoch = options_.interval == "epoch";
  const int64_t before = per_epoch ? 0 : options_.warmup_steps;
  const int64_t index = std::max<int64_t>(0, (per_epoch ? position.epoch : position.step) - before);
  int64_t total = per_epoch ? position.total_epochs : position.total_steps;
  if (total >= 0) total = std::max<int64_t>(1, (total - before) / options_.frequency);
  Rates rates = value(base_lr, index / options_.frequency, total);
  rates.lr *= options_.factor(position.step);
  return rates;
}

int64_t whole_if_null(const std::optional<int64_t>& option, int64_t total, const char* name) {
  if (option) return *option;
  if (total >= 0) return total;
  throw ConfigError(
      "scheduler.{}: the length of the training is not known; set it, trainer.max_epochs or "
      "trainer.max_steps",
      name);
}

}  // namespace cytra::training
