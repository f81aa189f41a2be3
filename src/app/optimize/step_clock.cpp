#include "app/optimize/step_clock.h"

#include <string_view>

#include "device/backend.h"
#include "training/profiler.h"

namespace cytra::app {
namespace {

constexpr int64_t kWarmUp = 2;        // steps: buffers, kernels chosen for the shapes
constexpr int64_t kToRecord = 12;     // steps after which those of a GPU are recorded, or not
constexpr int64_t kFewest = 3;        // batches that are timed, however long they take
constexpr int64_t kRecorded = 8;      // batches
constexpr std::size_t kLosses = 200;  // kept

int64_t images_of(const data::Batch& batch) {
  if (!batch.tensors.empty()) return batch.tensors.begin()->second.size(0);
  return batch.lists.empty() ? 0 : std::ssize(batch.lists.begin()->second);
}

}  // namespace

StepClock::StepClock(double seconds, bool records, c10::Device device)
    : seconds_(seconds), records_(records), device_(device) {
  name = training::kProfilerName;  // no scope is around its own hooks
}

void StepClock::on_fit_start(training::Context& /*context*/) {
  fit_ = {};
  listening_.emplace(*this, /*to_operations=*/false);
}

void StepClock::on_epoch_start(training::Context& context) {
  if (context.state.epoch == 0) return;
  const bool is_early = fit_.seconds() < seconds_ / 2;
  if (phase_ == Phase::timing && !has_passed_an_epoch_ && is_early) start_timing();
  if (phase_ <= Phase::timing) has_passed_an_epoch_ = has_passed_an_epoch_ || is_early;
}

void StepClock::on_batch_start(training::Context& context) {
  if (!batch_) batch_ = *context.batch;
  if (phase_ == Phase::recording) ++profiled_;
  if (phase_ != Phase::timing) return;
  times_.batches += 1;
  times_.images += images_of(*context.batch);
}

void StepClock::on_step_end(training::Context& context) {
  if (losses_.size() < kLosses) losses_.push_back(context.loss);
  ++steps_;
  const bool may_be_recorded =
      device::has_graphs(device_) && steps_ < kToRecord && fit_.seconds() < seconds_ / 2;
  if (phase_ == Phase::warming && steps_ >= kWarmUp && !may_be_recorded) return start_timing();
  if (phase_ == Phase::timing && times_.batches >= kFewest && timed_.seconds() >= seconds_) {
    stop_timing();
    phase_ = records_ ? Phase::recording : Phase::done;
    if (records_) {
      perf::OperatorProfileOptions options;
      options.cuda = device::is_accelerator(device_);
      profiler_.emplace(options);
      profiler_->prepare();
      profiler_->start();
    }
  } else if (phase_ == Phase::recording && profiled_ >= kRecorded) {
    profiler_->stop(operators_, "");
    phase_ = Phase::done;
  }
  context.stop = phase_ == Phase::done;
}

double StepClock::validation_s() const {
  return validated_ > 0 ? validation_s_ / static_cast<double>(validated_) : 0;
}

void StepClock::start_timing() {
  device::synchronize(device_);
  phase_ = Phase::timing;
  times_ = {};
  apart_s_ = 0;
  timed_ = {};
}

void StepClock::stop_timing() {
  device::synchronize(device_);
  times_.wall_s = timed_.seconds() - apart_s_;
}

/// Stops listening: the training has ended, by this callback or earlier.
void StepClock::stop_listening() {
  listening_.reset();
  if (phase_ == Phase::timing) stop_timing();
  if (phase_ == Phase::recording) profiler_->stop(operators_, "");
  phase_ = Phase::done;
}

double* StepClock::slot(const std::string& scope) {
  constexpr std::string_view kCallbacks = "callbacks.";
  if (scope == "validation") return &validation_s_;
  if (scope == "checkpoint") return &apart_s_;
  if (phase_ != Phase::timing) return nullptr;
  if (scope == "data") return &times_.data_s;
  if (scope == "forward" || scope == "backward" || scope == "optimizer") return &times_.compute_s;
  if (scope.compare(0, kCallbacks.size(), kCallbacks) != 0) return nullptr;
  const std::size_t hook = scope.rfind('.');  // callbacks.NAME.on_step_end
  return &times_.callbacks_s[scope.substr(kCallbacks.size(), hook - kCallbacks.size())];
}

void StepClock::begin(const char* scope) {
  if (depth_++ > 0) return;
  open_ = slot(scope);
  is_optimizer_ = open_ == &times_.compute_s && scope == std::string_view("optimizer");
  scope_ = {};
}

void StepClock::end() {
  if (depth_ == 0 || --depth_ > 0 || open_ == nullptr) return;
  const double seconds = scope_.seconds();
  *open_ += seconds;
  if (open_ == &validation_s_) apart_s_ += seconds;
  if (is_optimizer_) times_.fixed_s += seconds;
}

}  // namespace cytra::app
