#include "training/trainer.h"

#include <cmath>
#include <csignal>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "data/device_feed.h"
#include "nn/model.h"
#include "training/autocast.h"
#include "training/optimizer.h"
#include "training/scheduler.h"

namespace cytra::training {
namespace {

volatile std::sig_atomic_t signal_received = 0;

void on_signal(int signal) {
  if (signal_received != 0) std::_Exit(128 + signal);  // the second one: at once
  signal_received = signal;
}

c10::Device device_of(const nn::Model& model) {
  return model.parameters().front().device();
}

}  // namespace

/// What one call of fit() works with.
struct Trainer::Step {
  Task& task;
  Optimizer& optimizer;
  const Scheduler& scheduler;
  data::DeviceFeed train, valid;
  TrainState state;
  int64_t batches, total_steps;  // batches in an epoch, steps of the whole training
  c10::DeviceType device;
  Progress progress;
  at::Tensor loss;  // of the newest batch, on its device
  double lr = 0;
  std::string note;          // what the progress line says, as of the last logging
  data::Timing logged = {};  // Trainer::timing_ at the last logging
};

Trainer::Trainer(TrainerOptions options,
                 std::vector<std::shared_ptr<Callback>> callbacks,
                 std::vector<std::shared_ptr<Logger>> loggers,
                 Save save)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      loggers_(std::move(loggers)),
      save_(std::move(save)) {}

int Trainer::interrupted() {
  return signal_received;
}

TrainState Trainer::fit(Task& task,
                        Optimizer& optimizer,
                        const Scheduler& scheduler,
                        data::DataLoader& train,
                        data::DataLoader& valid,
                        TrainState state) {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  const int64_t batches = train.size();
  if (options_.max_epochs < 0 && options_.max_steps < 0)
    throw ConfigError("set trainer.max_epochs or trainer.max_steps");
  if (batches == 0)
    throw ConfigError("the training set has no batch; check data.batch_size and data.drop_last");
  const int64_t steps_per_epoch =
      (batches + options_.accumulate_grad_batches - 1) / options_.accumulate_grad_batches;
  int64_t total =
      options_.max_epochs < 0 ? options_.max_steps : options_.max_epochs * steps_per_epoch;
  if (options_.max_steps >= 0) total = std::min(total, options_.max_steps);
  const int64_t done = state.step;
  Step step{task,
            optimizer,
            scheduler,
            data::DeviceFeed(train, device_of(task.model())),
            data::DeviceFeed(valid, device_of(task.model())),
            std::move(state),
            batches,
            total,
            device_of(task.model()).type(),
            Progress("training", total, done),
            {},
            0,
            ""};
  for (const auto& callback : callbacks_) callback->on_fit_start(step.state);
  Control control;
  // Batches of which no image could be loaded make fewer steps, not more epochs.
  const auto has_epoch = [&] {
    return options_.max_epochs < 0 || step.state.epoch < options_.max_epochs;
  };
  while (!stop_ && step.state.step < total && has_epoch()) {
    train_epoch(step);
    if (interrupted() != 0) break;
    if (step.state.batch ==
        batches) {  // not cut short by max_steps: a resume finishes such an epoch
      step.state.epoch += 1;
      step.state.batch = 0;
    }
    const bool last = stop_ || step.state.step >= total || !has_epoch();
    if (options_.limit_val_batches != 0 &&
        (last || step.state.epoch % options_.check_val_every_n_epoch == 0))
      validate(step);
    for (const auto& callback : callbacks_) callback->on_epoch_end(step.state, control);
    carry_out(control, step.state);
  }
  step.progress.finish();
  for (const auto& callback : callbacks_) callback->on_fit_end(step.state);
  return step.state;
}

void Trainer::train_epoch(Step& step) {
  TrainState& state = step.state;
  step.task.model().train();
  const bool is_last = options_.max_epochs >= 0 && state.epoch + 1 >= options_.max_epochs;
  step.train.start_epoch(state.epoch, state.batch, !is_last);
  int64_t pending = 0;        // batches whose gradients no step has used
  const auto goes_on = [&] {  // a group of accumulated batches is never left half done
    return state.batch % options_.accumulate_grad_batches != 0 ||
           (interrupted() == 0 && !stop_ && state.step < step.total_steps);
  };
  const int64_t accumulate = options_.accumulate_grad_batches;
  while (state.batch < step.batches && goes_on()) {
    const auto begin = std::chrono::steady_clock::now();
    const double waited = step.train.waited_s();
    const std::optional<data::Batch> batch = step.train.next();
    // A batch is missing when none of its images could be loaded.
    const int64_t number = batch ? batch->number : step.batches;
    const int64_t group_begin = number / accumulate * accumulate;
    if (pending > 0 && (!batch || state.batch <= group_begin)) {
      optimize(step);
      pending = 0;
    }
    state.batch = number;
    if (!batch || state.step >= step.total_steps) break;
    {
      const Autocast autocast(options_.precision, step.device);
      step.loss = step.task.training_step(*batch);
    }
    // On a GPU the value is read only when it is logged, so that the step does not wait for it.
    const bool is_read = step.device == at::kCPU || state.step % options_.log_every_n_steps == 0;
    if (is_read && !std::isfinite(step.loss.item<double>())) {
      throw DivergedError(
          fmt::format("the loss is {} at step {} (samples: {}); try a lower optimizer.lr or "
                      "trainer.gradient_clip_val=1",
                      step.loss.item<double>(),
                      state.step,
                      fmt::join(batch->ids, ", ")));
    }
    // The last group of an epoch may be shorter: weigh by its true size.
    const int64_t group = std::min(accumulate, step.batches - group_begin);
    (group > 1 ? step.loss / static_cast<double>(group) : step.loss).backward();
    state.batch += 1;
    pending += 1;
    if (state.batch == group_begin + group) {
      optimize(step);
      pending = 0;
    }
    timing_.add(step.train.waited_s() - waited, begin);
  }
}

void Trainer::optimize(Step& step) {
  TrainState& state = step.state;
  if (options_.gradient_clip_val > 0) step.optimizer.clip_grad_norm(options_.gradient_clip_val);
  step.lr = step.scheduler.lr(step.optimizer.base_lr(), state.step, step.total_steps);
  step.optimizer.step(step.lr);
  step.optimizer.zero_grad();
  state.step += 1;
  if (state.step % options_.log_every_n_steps == 0 || state.step == 1) {
    const data::Timing times = timing_.since(step.logged);
    step.logged = timing_;
    log({{"train/loss_step", step.loss.item<double>()}, {"lr", step.lr}},
        state,
        {{"data_time", times.data_s()}, {"step_time", times.step_s()}});
    step.note = fmt::format(
        "epoch {} loss {:.4f} lr {:.2e}", state.epoch, state.metrics["train/loss_step"], step.lr);
    for (const auto& [name, value] : state.metrics) {
      if (name.rfind("val/", 0) == 0) step.note += fmt::format(" {} {:.4f}", name, value);
    }
  }
  step.progress.update(state.step, step.note);
  Control control;
  for (const auto& callback : callbacks_) callback->on_step_end(state, control);
  carry_out(control, state);
}

void Trainer::validate(Step& step) {
  nn::Model& model = step.task.model();
  model.eval();
  {
    const c10::InferenceMode inference;
    const Autocast autocast(options_.precision, step.device);
    step.valid.start_epoch(0);
    while (interrupted() == 0) {
      const std::optional<data::Batch> batch = step.valid.next();
      if (!batch) break;
      step.task.validation_step(*batch);
    }
  }
  const Metrics metrics = step.task.validation_end();
  if (interrupted() != 0) return;  // of some of the images only
  log(metrics, step.state);
  std::string line =
      fmt::format("epoch {} step {}/{}:", step.state.epoch, step.state.step, step.total_steps);
  for (const auto& [name, value] : metrics) line += fmt::format(" {} {:.4f}", name, value);
  log::info("{}", line);
  Control control;
  for (const auto& callback : callbacks_) callback->on_validation_end(step.state, control);
  carry_out(control, step.state);
}

void Trainer::carry_out(Control& control, const TrainState& state) {
  for (const std::string& path : control.save_to) save_(path, state);
  control.save_to.clear();
  stop_ = stop_ || control.stop;
}

void Trainer::log(const Metrics& metrics, TrainState& state, const Metrics& times) {
  for (const auto& [name, value] : metrics) state.metrics[name] = value;
  Metrics all = metrics;
  all.insert(times.begin(), times.end());
  for (const auto& logger : loggers_) logger->log(all, state.epoch, state.step);
}

}  // namespace cytra::training
