#include "training/trainer.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/strings.h"
#include "config/checked.h"
#include "config/run_config.h"
#include "nn/model.h"
#include "perf/device.h"
#include "training/feeds.h"
#include "training/optimizer.h"
#include "training/processes/gradient_average.h"
#include "training/processes/processes.h"
#include "training/profiler.h"
#include "training/scheduler.h"
#include "training/step.h"
#include "training/trainer_call.h"

namespace cytra::training {
namespace {

using Clock = std::chrono::steady_clock;

c10::Device device_of(const nn::Model& model) {
  const std::vector<at::Tensor> parameters = model.parameters();
  return parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().device();
}

}  // namespace

Trainer::Trainer(TrainerOptions options,
                 Task& task,
                 Optimizer& optimizer,
                 Scheduler& scheduler,
                 std::vector<std::shared_ptr<Callback>> callbacks,
                 std::vector<std::shared_ptr<Logger>> loggers,
                 config::Node config,
                 Processes* processes)
    : options_(config::checked(std::move(options), "trainer")),
      alone_(processes == nullptr ? std::make_unique<Processes>() : nullptr),
      processes_(processes == nullptr ? *alone_ : *processes),
      task_(task),
      optimizer_(optimizer),
      scheduler_(scheduler),
      callbacks_(std::move(callbacks)),
      loggers_(std::move(loggers)),
      config_(std::move(config)),
      precision_(precision_of(options_.precision)),
      device_(device_of(task.model())),
      scaler_(options_.grad_scaler, precision_.needs_scaling(), device_),
      context_{state_, task_, optimizer_, loggers_} {
  if (device_.is_cpu() && precision_.compute == at::kHalf) {
    log::warn(
        "trainer.precision={}: most CPUs compute float16 many times slower than float32; use "
        "bf16-mixed or 32 there",
        options_.precision);
  }
  for (std::size_t c = 0; c < callbacks_.size(); ++c) {
    if (callbacks_[c]->name.empty()) callbacks_[c]->name = fmt::format("callback_{}", c);
    callbacks_[c]->prepare(task_.model());
    callbacks_[c]->attach(task_);
  }
  if (!optimizer_.is_attached()) optimizer_.attach(task_.model().named_parameters().pairs());
  state_.seed = static_cast<int64_t>(at::globalContext().defaultGenerator(at::kCPU).current_seed());
}
Trainer::~Trainer() = default;

/// Lengths of the training, once the number of batches is known.
void Trainer::plan(data::DataLoader& train, data::DataLoader& valid) {
  const int64_t batches = train.size();
  if (batches == 0)
    throw ConfigError(
        "the training set has no batch; check data.batch_size, data.drop_last and "
        "trainer.limit_train_batches");
  const at::Tensor all = at::tensor({batches, valid.size()}, at::kDouble);
  processes_.sum({all});
  if (all[0].item<double>() != static_cast<double>(batches * processes_.place().size)) {
    throw DataError(fmt::format(
        "{} training batches, but other processes have others: expected the same images everywhere",
        batches));
  }
  has_validation_ = all[1].item<double>() > 0;
  if (has_validation_ && !processes_.is_alone() && task_.sums().empty())
    throw ConfigError("trainer.devices: this task's metrics can't be summed over processes");
  const int64_t interval = options_.val_check_interval.count;
  if (has_validation_ && options_.check_val_every_n_epoch && interval > batches) {
    throw ConfigError(
        fmt::format("trainer.val_check_interval={}: an epoch has {} batches; expected at most so "
                    "many, or trainer.check_val_every_n_epoch=null, which counts over epochs",
                    interval,
                    batches));
  }
  const int64_t accumulate = options_.accumulate_grad_batches;
  const int64_t steps = (batches + accumulate - 1) / accumulate;
  int64_t total = options_.max_epochs < 0 ? -1 : options_.max_epochs * steps;
  if (options_.max_steps >= 0)
    total = total < 0 ? options_.max_steps : std::min(total, options_.max_steps);
  context_.batches = batches;
  context_.has_validation = has_validation_;
  context_.log_every_n_steps = options_.log_every_n_steps;
  context_.grad_scale = &scaler_.factor();
  context_.total_steps = total;
  context_.total_epochs = options_.max_epochs >= 0 ? options_.max_epochs
                          : total < 0              ? -1
                                                   : (total + steps - 1) / steps;
}

void Trainer::fit(data::DataLoader& train, data::DataLoader& valid) {
  Feeds feeds{data::DeviceFeed(train, device_), data::DeviceFeed(valid, device_), valid.size()};
  plan(train, valid);
  state_.processes = processes_.place().size;
  edge_ = state_.batch;
  edge_before_ = std::max<int64_t>(0, edge_ - 1) / options_.accumulate_grad_batches *
                 options_.accumulate_grad_batches;
  if (options_.enable_progress_bar && processes_.is_first())
    progress_ = std::make_unique<Progress>("training", context_.total_steps, state_.step);
  begin_ = Clock::now();
  seconds_before_ = state_.seconds;
  try {
    processes_.guard([&] { run(feeds); });
  } catch (const Interrupted& signal) {
    if (!processes_.is_alone()) {  // the others could not be asked
      on_exception(signal.what());
      throw;
    }
    log::warn("{}", signal.what());
    state_.batch = edge_;  // the batches of a step that was not made come again
  } catch (const std::exception& error) {
    on_exception(error.what());
    throw;
  }
  if (progress_) progress_->finish();
}

void Trainer::run(Feeds& feeds) {
  const auto has_epoch = [&] {
    return options_.max_epochs < 0 || state_.epoch < options_.max_epochs;
  };
  if (!processes_.is_alone()) {
    average_ = std::make_unique<GradientAverage>(
        processes_,
        task_.model(),
        /*finds_unused=*/options_.strategy == "ddp_find_unused_parameters_true");
  }
  agree();
  if (has_epoch() && !should_stop()) sanity_check(feeds);
  call("on_fit_start", [&](Callback& callback) { callback.on_fit_start(context_); });
  while (has_epoch() && !should_stop()) {
    train_epoch(feeds);
    settle();
    if (state_.batch < context_.batches) break;
    end_epoch(feeds);
  }
  if (has_validation_ && state_.validated_at != state_.step) validate(feeds);
  call("on_fit_end", [&](Callback& callback) { callback.on_fit_end(context_); });
  carry_out();
  writer_.wait();
  agree();  // the files are there, for all to read
}

double Trainer::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Trainer::train_epoch(Feeds& feeds) {
  task_.model().train();
  const int64_t accumulate = options_.accumulate_grad_batches;
  if (state_.batch == 0)
    call("on_epoch_start", [&](Callback& callback) { callback.on_epoch_start(context_); });
  const bool more = options_.max_epochs < 0 || state_.epoch + 1 < options_.max_epochs;
  if (state_.batch < context_.batches) {
    // saved at the step's edge, killed before or in the validation that was due
    if (state_.batch > 0 && is_validation_due() && has_validation_) validate(feeds);
    feeds.start_epoch(state_.epoch, state_.batch, more);
  }
  Group group;
  while (state_.batch < context_.batches) {
    // A group of accumulated batches is never left half done.
    if (group.batches == 0 && should_stop()) return;
    const auto begin = Clock::now();
    const double waited = feeds.train.waited_s();
    std::optional<data::Batch> batch =
        processes_.is_alone() ? feeds.train.next() : feeds.at(state_.batch);
    // A batch is missing when none of its images could be loaded.
    const int64_t number = batch ? batch->number : context_.batches;
    const int64_t group_begin = number / accumulate * accumulate;
    if (group.batches > 0 && (!batch || state_.batch <= group_begin)) {
      apply(group);
      if (batch && should_stop()) return;
    }
    state_.batch = number;
    if (!batch) return;
    // By its true size: an epoch's last group may be shorter, and one may begin in its middle.
    const int64_t group_end = std::min(group_begin + accumulate, context_.batches);
    if (group.batches == 0) group.size = group_end - number;
    train_batch(std::move(*batch), group);
    state_.batch += 1;
    if (state_.batch == group_end) apply(group);
    timing_.add(feeds.train.waited_s() - waited, begin);
    if (group.batches == 0 && state_.batch < context_.batches && has_validation_ &&
        is_validation_due() && !should_stop())
      validate(feeds);
  }
}

void Trainer::train_batch(data::Batch batch, Group& group) {
  cast(batch, precision_.parameters);
  context_.batch = &batch;
  call("on_batch_start", [&](Callback& callback) { callback.on_batch_start(context_); });
  context_.batch = nullptr;
  const bool keeps_all = options_.on_nonfinite == "dump";
  if (group.batches == 0) {
    seed_step(state_, processes_.place().rank, device_);
    if (keeps_all) group.before = state_;
  }
  const bool averages = average_ && group.batches + 1 == group.size;
  if (average_) average_->share_buffers();
  if (averages) average_->before_forward();
  at::Tensor loss;
  {
    RECORD_USER_SCOPE("forward");
    const Autocast autocast(precision_, device_.type());
    loss = task_.training_step(batch);
  }
  if (!loss.defined() || loss.numel() != 1 || !loss.requires_grad())
    throw std::logic_error("training_step() gave no scalar with a graph");
  const at::Tensor value = loss.detach().reshape({});
  if (averages) average_->before_backward(loss);
  if (group.size == 1) {
    group.loss = value;
    backward(scaler_.scale(loss), options_.detect_anomaly, state_.step + 1, batch.ids);
  } else {
    const double weight = 1.0 / static_cast<double>(group.size);
    group.loss = group.loss.defined() ? group.loss + value * weight : value * weight;
    backward(scaler_.scale(loss * weight), options_.detect_anomaly, state_.step + 1, batch.ids);
  }
  if (averages) average_->after_backward();
  group.batches += 1;
  if (keeps_all) {
    group.kept.push_back(std::move(batch));
  } else {
    std::move(batch.ids.begin(), batch.ids.end(), std::back_inserter(group.ids));
  }
}

void Trainer::apply(Group& group) {
  settle();  // whether the step before was skipped decides on the learning rate
  if (group.batches < group.size) {  // the images of the others could not be loaded
    const double share = static_cast<double>(group.size) / static_cast<double>(group.batches);
    group.loss = group.loss * share;
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : task_.model().parameters()) {
      if (parameter.grad().defined()) parameter.mutable_grad().mul_(share);
    }
  }
  group.loss = processes_.mean(group.loss);
  call("on_before_step", [&](Callback& callback) { callback.on_before_step(context_); });
  const Position position{
      state_.step - state_.skipped, context_.total_steps, state_.epoch, context_.total_epochs};
  const Rates rates = scheduler_.at(optimizer_.base_lr(), position);
  pending_ = std::make_unique<Pending>(
      update(optimizer_, scaler_, options_, rates, group.loss, device_.is_cpu()));
  optimizer_.zero_grad();
  state_.step += 1;
  edge_before_ = std::exchange(edge_, state_.batch);
  pending_->step = state_.step;
  pending_->lr = rates.lr;
  pending_->group = std::exchange(group, {});
  if (device_.is_cpu()) settle();
  context_.lr = rates.lr;
  context_.momentum = rates.momentum.value_or(optimizer_.momentum());
  if (progress_) progress_->update(state_.step, note_);
  call("on_step_end", [&](Callback& callback) { callback.on_step_end(context_); });
  carry_out();
}

void Trainer::settle() {
  if (!pending_) return;
  const std::unique_ptr<Pending> step = std::move(pending_);
  const Outcome outcome = step->outcome();
  context_.loss = outcome.loss;
  context_.grad_norm = outcome.grad_norm;
  if (outcome.is_finite) {
    skipped_in_a_row_ = 0;
    state_.loss_sum += outcome.loss * static_cast<double>(step->group.batches);
    state_.loss_count += step->group.batches;
  } else {
    on_nonfinite(*step, outcome);
  }
  if (step->step % options_.log_every_n_steps == 0 || step->step == 1) log_step(*step, outcome);
}

void Trainer::on_nonfinite(const Pending& step, const Outcome& outcome) {
  constexpr int64_t kMostInARow = 100;
  state_.skipped += 1;
  skipped_in_a_row_ += 1;
  const std::string what = describe(step, outcome);
  const bool is_too_often = skipped_in_a_row_ >= kMostInARow;
  const bool is_overflow = precision_.needs_scaling() && std::isfinite(outcome.loss);
  if ((is_overflow || options_.on_nonfinite == "skip") && !is_too_often) {
    const bool is_news = !is_overflow && skipped_in_a_row_ <= 3;
    log::write(is_news ? log::Level::warn : log::Level::debug,
               fmt::format("{}: step left out ({} of {} so far)", what, state_.skipped, step.step));
    return;
  }
  std::string advice = "try a lower optimizer.lr or trainer.gradient_clip_val=1";
  if (is_too_often)
    advice = fmt::format("the last {} steps were left out; {}", kMostInARow, advice);
  if (options_.on_nonfinite == "dump") {
    config::Node own = config_;
    config::fill_in_environment(own);
    std::string folder = own.get<std::string>("paths.output_dir", ".") + "/nonfinite";
    if (!processes_.is_first()) folder += fmt::format(".rank{}", processes_.place().rank);
    advice = fmt::format("the step again: checkpoint.ckpt_path={}; {}",
                         dump(step, parts(), config_, folder),
                         advice);
  }
  throw DivergedError(what + "; " + advice);
}

void Trainer::end_epoch(Feeds& feeds) {
  const bool is_due = is_validation_due();
  const TrainState before = state_;
  state_.epoch += 1;
  state_.batch = edge_ = edge_before_ = 0;
  if (state_.loss_count > 0)
    log({{"train/loss_epoch", state_.loss_sum / static_cast<double>(state_.loss_count)}});
  state_.loss_sum = 0;
  state_.loss_count = 0;
  if (!has_validation_) scheduler_.on_metrics(state_.metrics);  // else validate() does
  if (is_due && has_validation_) {
    // Cut short by a signal or an error: whoever goes on validates first.
    const auto undo = [&] {
      state_ = before;
      edge_ = state_.batch;
    };
    try {
      validate(feeds);
    } catch (...) {
      undo();
      throw;
    }
    if (state_.validated_at != state_.step) return undo();
  }
  call("on_epoch_end", [&](Callback& callback) { callback.on_epoch_end(context_); });
  carry_out();
}

void Trainer::log(const Metrics& metrics, const Metrics& times) {
  for (const auto& [name, value] : metrics) state_.metrics[name] = value;
  Metrics all = metrics;
  all.insert(times.begin(), times.end());
  for (const auto& logger : loggers_) logger->log(all, state_.epoch, state_.step);
}

void Trainer::log_step(const Pending& step, const Outcome& outcome) {
  const data::Timing times = timing_.since(logged_);
  logged_ = timing_;
  Metrics metrics{{"train/loss_step", outcome.loss}, {"lr", step.lr}};
  if (options_.gradient_clip_val) metrics["grad_norm"] = outcome.grad_norm;
  if (state_.skipped > 0) metrics["skipped_steps"] = static_cast<double>(state_.skipped);
  Metrics spent;  // none of a CPU's first step: it is not over
  if (times.batches > 0) spent = {{"data_time", times.data_s()}, {"step_time", times.step_s()}};
  log(metrics, spent);
  note_ = fmt::format("epoch {} loss {:.4f} lr {:.2e}", state_.epoch, outcome.loss, step.lr);
  for (const auto& [name, value] : state_.metrics) {
    if (name.rfind("val/", 0) == 0) note_ += fmt::format(" {} {:.4f}", name, value);
  }
  note_ += fmt::format(" data {:.0f}%", 100 * times.data_share());
  if (device_.is_cuda()) note_ += " GPU " + format_bytes(perf::peak_memory(device_));
}

}  // namespace cytra::training
