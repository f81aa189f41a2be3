#include "training/trainer/training_log.h"

#include <fmt/format.h>

#include "base/json_log.h"
#include "base/log.h"
#include "base/nan_sign.h"
#include "base/signal_watch.h"
#include "base/strings.h"
#include "base/timers.h"
#include "config/json.h"
#include "config/node.h"
#include "device/backend.h"
#include "device/device.h"
#include "training/callback.h"
#include "training/trainer/step.h"

namespace cytra::training {

TrainingLog::TrainingLog(const std::vector<std::shared_ptr<Logger>>& loggers,
                         TrainState& state,
                         c10::Device device)
    : loggers_(loggers), state_(state), device_(device) {}

void TrainingLog::send(Metrics metrics) {
  for (auto& [name, value] : metrics) value = without_nan_sign(value);
  for (const auto& logger : loggers_) logger->log(metrics, state_.logged_epoch(), state_.step);
}

void TrainingLog::log(const Metrics& metrics) {
  for (const auto& [name, value] : metrics)
    of_epoch_[name] = state_.metrics[name] = without_nan_sign(value);
  send(metrics);
}

void TrainingLog::tell_epoch() {
  const Metrics metrics = std::exchange(of_epoch_, {});
  if (metrics.empty() || !log::is_json()) return;
  config::Node event = config::Node::make_map();
  event.set("event", config::Node::make_string("epoch"));
  event.set("epoch", config::Node::make_integer(state_.logged_epoch()));
  event.set("step", config::Node::make_integer(state_.step));
  config::Node& numbers = event.set("metrics", config::Node::make_map());
  for (const auto& [name, value] : metrics)
    numbers.map.emplace_back(name, config::Node::make_real(value));
  log::write_json(config::to_plain_json(std::move(event)));
}

void TrainingLog::add_batch(double waited_s, const Stopwatch& all) {
  timing_.add(waited_s, all);
}

void TrainingLog::log_step(const StepOutcome& outcome, double lr, bool is_clipped) {
  const data::Timing times = timing_.since(logged_);
  logged_ = timing_;
  Metrics metrics{{"train/loss_step", without_nan_sign(outcome.loss)}, {"lr", lr}};
  if (is_clipped) metrics["grad_norm"] = without_nan_sign(outcome.grad_norm);
  if (state_.skipped > 0) metrics["skipped_steps"] = static_cast<double>(state_.skipped);
  for (const auto& [name, value] : metrics) state_.metrics[name] = value;
  if (times.batches > 0) {  // else it is a CPU's first step, which is not over
    metrics["data_time"] = times.data_s();
    metrics["step_time"] = times.step_s();
  }
  if (timers::are_on()) {
    for (const auto& [name, times] : timers::main_statistics()) {
      const std::string key = "timer/" + name;
      metrics[key + "/count"] = static_cast<double>(times.count);
      metrics[key + "/mean_s"] = times.mean_s;
      metrics[key + "/p50_s"] = times.p50_s;
      metrics[key + "/p95_s"] = times.p95_s;
    }
  }
  send(metrics);
  note_ = fmt::format(
      "epoch {} loss {:.4f} lr {:.2e}", state_.epoch, without_nan_sign(outcome.loss), lr);
  for (const auto& [name, value] : state_.metrics) {
    if (name.rfind("val/", 0) == 0) note_ += fmt::format(" {} {:.4f}", name, value);
  }
  note_ += fmt::format(" data {:.0f}%", 100 * times.data_share());
  if (usage_) note_ += " " + usage_->read().text();
  if (device::has_own_memory(device_))
    note_ += " peak " + format_bytes(device::peak_memory(device_));
}

void TrainingLog::log_validation(const Metrics& metrics, int64_t total_steps) {
  log(metrics);
  std::string line = fmt::format("epoch {} step {}", state_.epoch, state_.step);
  if (total_steps >= 0) line += fmt::format("/{}", total_steps);
  line += ":";
  for (const auto& [name, value] : metrics)
    line += fmt::format(" {} {:.4f}", name, without_nan_sign(value));
  log::info("{}", line);
}

void TrainingLog::begin_progress(int64_t total_steps) {
  progress_ = std::make_unique<Progress>("training", total_steps, state_.step);
  progress_->update(state_.step);  // the first step may take long
  usage_.emplace(device_);
}

void TrainingLog::show_step() {
  start_is_over();  // a step is worth keeping
  if (progress_) progress_->update(state_.step, note_);
}

void TrainingLog::show_validation(int64_t done, int64_t batches) {
  if (progress_) progress_->show_part("validation", done, batches);
}

void TrainingLog::end_progress() {
  if (progress_) progress_->finish();
  usage_.reset();
}

}  // namespace cytra::training
