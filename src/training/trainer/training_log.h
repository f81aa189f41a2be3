#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "base/progress.h"
#include "data/loader/timing.h"
#include "perf/device_usage.h"
#include "training/logger.h"

namespace cytra::training {

struct StepOutcome;
struct TrainState;

/// The output of a training: metrics to the loggers and into `state.metrics`, and the progress
/// line with the newest of them.
class TrainingLog {
 public:
  /// Keeps references to the loggers and the state.
  TrainingLog(const std::vector<std::shared_ptr<Logger>>& loggers,
              TrainState& state,
              c10::Device device);

  void log(const Metrics& metrics);
  /// Adds a batch that began at `begin`, and the time it waited for the loader.
  void add_batch(double waited_s, const Stopwatch& all);
  /// The numbers of the newest step, with the mean times of the batches since the last call. Times
  /// go to the loggers alone, as they differ in each run; the norm of gradients is logged when
  /// they are clipped.
  void log_step(const StepOutcome& outcome, double lr, bool is_clipped);
  /// Metrics of a validation, also as a line of text.
  void log_validation(const Metrics& metrics, int64_t total_steps);

  /// Tells what was logged of an epoch that has ended to who reads lines of JSON.
  void tell_epoch();

  /// Shows progress until end_progress(); before and after it nothing is shown.
  void begin_progress(int64_t total_steps);
  void show_step();
  void show_validation(int64_t done, int64_t batches);
  void end_progress();

  const data::Timing& timing() const { return timing_; }  // of all batches

 private:
  void send(Metrics metrics);
  const std::vector<std::shared_ptr<Logger>>& loggers_;
  TrainState& state_;
  c10::Device device_;
  std::unique_ptr<Progress> progress_;     // null: not shown
  std::optional<perf::UsageMeter> usage_;  // while it is shown
  std::string note_;                       // what the line of progress says after its numbers
  Metrics of_epoch_;                       // logged since the last tell_epoch(), but for steps
  data::Timing timing_, logged_;           // of all batches; as of the last log_step()
};

}  // namespace cytra::training
