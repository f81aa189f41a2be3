#pragma once
// The common code of schedules that a formula gives.
#include "config/registry.h"
#include "training/scheduler.h"

namespace cytra::training {

/// A schedule that is a struct with its options, below ScheduleOptions, and with
/// `Rates value(double base_lr, int64_t index, int64_t total) const`.
template <class T>
class ClosedForm final : public Schedule {
 public:
  using Options = T;
  explicit ClosedForm(const T& options) : Schedule(options), options_(options) {}
  Rates value(double base_lr, int64_t index, int64_t total) const override {
    return options_.value(base_lr, index, total);
  }

 private:
  T options_;
};

}  // namespace cytra::training
