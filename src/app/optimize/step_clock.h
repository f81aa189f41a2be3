#pragma once
// Times the batches of a training from inside, by the scopes that the trainer marks.
#include <optional>
#include <vector>

#include "app/optimize/bottleneck.h"
#include "base/stopwatch.h"
#include "data/loader/batch.h"
#include "device/device.h"
#include "perf/operator_profile.h"
#include "perf/scopes.h"
#include "training/callback.h"

namespace cytra::app {

/// A callback, the last of all. Warms up for some steps, times the batches of `seconds`, records
/// the operations of a few more where asked, and stops the training. When an epoch ends within the
/// first half, timing begins anew: from then on images come from the cache.
class StepClock final : public training::Callback, public perf::ScopeListener {
 public:
  StepClock(double seconds, bool records, c10::Device device);

  void on_fit_start(training::Context&) override;
  void on_epoch_start(training::Context&) override;
  void on_batch_start(training::Context&) override;
  void on_step_end(training::Context&) override;
  void on_validation_batch(training::Context&) override { ++validated_; }
  void on_exception(training::Context&, const std::string& /*what*/) override { stop_listening(); }
  void on_fit_end(training::Context&) override { stop_listening(); }

  const StepTimes& times() const { return times_; }
  const std::vector<double>& losses() const { return losses_; }
  const perf::OperatorRows& operators() const { return operators_; }
  double profiled_batches() const { return static_cast<double>(profiled_); }
  double validation_s() const;
  /// A batch that was trained; none where the training ended before.
  const std::optional<data::Batch>& batch() const { return batch_; }

 private:
  enum class Phase { warming, timing, recording, done };
  void begin(const char* name) override;
  void end() override;
  void start_timing();
  void stop_timing();
  void stop_listening();
  double* slot(const std::string& scope);

  double seconds_;
  bool records_;
  c10::Device device_;
  Phase phase_ = Phase::warming;
  Stopwatch fit_, timed_, scope_;
  int64_t steps_ = 0, profiled_ = 0, validated_ = 0, depth_ = 0;
  bool has_passed_an_epoch_ = false;
  double* open_ = nullptr;     // where the outermost scope's time goes
  bool is_optimizer_ = false;  // the outermost scope is the optimizer's, whose time does not
                               // depend on the batch's size
  StepTimes times_;
  double validation_s_ = 0;  // of all batches of validations
  double apart_s_ = 0;       // time of validations and checkpoints within the timed part
  std::vector<double> losses_;
  std::optional<data::Batch> batch_;
  perf::OperatorRows operators_;
  std::optional<perf::OperatorProfiler> profiler_;
  std::optional<perf::Listening> listening_;
};

}  // namespace cytra::app
