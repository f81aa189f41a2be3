#pragma once
#include <cstdint>

namespace cytra::training {

/// The learning rate as a function of the optimizer's steps, so a resume can't drift. Registered
/// under torch.optim.lr_scheduler's class names.
struct Scheduler {
  static constexpr const char* kKind = "scheduler";
  virtual ~Scheduler() = default;
  /// `step` counts from 0; `total` is the number of steps of the whole training.
  virtual double lr(double base_lr, int64_t step, int64_t total) const = 0;
};

}  // namespace cytra::training
