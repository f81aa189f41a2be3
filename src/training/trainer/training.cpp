// From top to bottom: fit(), run(), train_epoch(), train_batch(), finish_group().
#include "training/trainer/training.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "config/checked.h"
#include "nn/forward_state.h"
#include "nn/model.h"
#include "perf/scopes.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer/call_hook.h"
#include "training/trainer/feeds.h"

namespace cytra::training {
namespace {

c10::Device device_of(const nn::Model& model) {
  const std::vector<at::Tensor> parameters = model.parameters();
  return parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().device();
}

/// Tries a step with the first image of a batch, as an epoch's last batch may have no other, where
/// the model has batch norms, which may not take that: it shows now, not after an epoch. Nothing
/// is changed. Throws: what the step throws.
void try_one_image(Task& task, data::Batch batch, const Precision& precision) {
  nn::Model& model = task.model();
  const auto buffers = model.named_buffers().keys();
  const bool has_norm = std::ranges::any_of(
      buffers, [](const std::string& name) { return name.ends_with("running_mean"); });
  if (!has_norm || batch.ids.size() < 2 || batch.tensors.empty()) return;
  for (auto& [key, rows] : batch.tensors) rows = rows.narrow(0, 0, 1);
  batch.ids.resize(1);
  batch.geometries.resize(1);
  batch.keys.resize(1);
  const at::NoGradGuard no_grad;
  const nn::KeepForwardState untouched(model);
  const Autocast autocast(precision, batch.tensors.begin()->second.device().type());
  task.training_step(batch);
}

}  // namespace

Training::Training(TrainerOptions options,
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
      objects_{task_, optimizer_, scheduler_, scaler_, callbacks_},
      stop_(options_, processes_),
      log_(loggers_, state_, device_),
      evaluator_(options_, task_, callbacks_, state_, processes_, stop_, device_),
      nonfinite_(options_, objects_, config_, processes_),
      context_{state_, task_, optimizer_, loggers_} {
  for (std::size_t c = 0; c < callbacks_.size(); ++c) {
    if (callbacks_[c]->name.empty()) callbacks_[c]->name = fmt::format("callback_{}", c);
    callbacks_[c]->prepare(task_.model());
    callbacks_[c]->attach(task_);
  }
  if (!optimizer_.is_attached()) optimizer_.attach(task_.model().named_parameters().pairs());
  state_.seed = static_cast<int64_t>(at::globalContext().defaultGenerator(at::kCPU).current_seed());
}

void Training::fit(data::DataLoader& train, data::DataLoader& valid) {
  Feeds feeds{data::DeviceFeed(train, device_), data::DeviceFeed(valid, device_), valid.size()};
  compiled_ = compile_steps(options_, task_.model(), optimizer_, scaler_, processes_.is_alone());
  plan_ = plan_training(options_, task_, train.size(), valid.size(), processes_);
  say_jump_of_rate();
  rows_of_last_ = train.rows_of_last();
  context_.batches = plan_.batches;
  context_.has_validation = plan_.has_validation;
  context_.total_steps = plan_.total_steps;
  context_.total_epochs = plan_.total_epochs;
  context_.log_every_n_steps = options_.log_every_n_steps;
  context_.grad_scale = &scaler_.factor();
  state_.processes = processes_.place().size;
  edge_ = state_.batch;
  edge_before_ = std::max<int64_t>(0, edge_ - 1) / options_.accumulate_grad_batches *
                 options_.accumulate_grad_batches;
  if (options_.enable_progress_bar && processes_.is_first()) log_.begin_progress(plan_.total_steps);
  stop_.start_clock(state_.seconds);
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
  log_.end_progress();
}

Rates Training::next_rates() const {
  return scheduler_.at(
      optimizer_.base_lr(),
      {state_.step - state_.skipped, plan_.total_steps, state_.epoch, plan_.total_epochs});
}

/// Warns where a training that goes on became longer or shorter, and its learning rate jumps.
void Training::say_jump_of_rate() {
  const int64_t before = std::exchange(state_.total_steps, plan_.total_steps);
  if (state_.step == 0 || before == 0 || before == plan_.total_steps) return;
  const double was = state_.lr, now = next_rates().lr;
  if (std::max(was, now) <= 1.2 * std::min(was, now)) return;
  log::warn(
      "{} steps in all, and {} when the checkpoint was saved: the learning rate jumps from {:.2e} "
      "to {:.2e}; checkpoint.weights_only=true begins a schedule of its own",
      plan_.total_steps,
      before,
      was,
      now);
}

void Training::run(Feeds& feeds) {
  if (!processes_.is_alone()) {
    const bool finds_unused = options_.strategy == "ddp_find_unused_parameters_true";
    average_ = std::make_unique<GradientAverage>(processes_, task_.model(), finds_unused);
    syncs_norms_ = options_.sync_batchnorm && has_batch_norms(processes_, task_.model());
  }
  stop_.agree();
  if (has_epoch(options_, state_.epoch) && !stop_.is_met(state_)) sanity_check(feeds);
  call("on_fit_start", &Callback::on_fit_start);
  while (has_epoch(options_, state_.epoch) && !stop_.is_met(state_)) {
    train_epoch(feeds);
    take_outcome();
    if (state_.batch < plan_.batches) break;
    end_epoch(feeds);
  }
  if (plan_.has_validation && state_.validated_at != state_.step && !leaves_validation())
    validate(feeds);
  if (plan_.has_validation && state_.validated_at != state_.step && leaves_validation()) {
    log::info(
        "trainer.max_time is over: the newest weights are not validated, but those of step {}",
        state_.validated_at);
  }
  call("on_fit_end", &Callback::on_fit_end);
  carry_out();
  if (processes_.is_first()) log_.tell_epoch();
  writer_.wait();
  stop_.agree();  // the files are there, for all to read
}

void Training::train_epoch(Feeds& feeds) {
  task_.model().train();
  const int64_t accumulate = options_.accumulate_grad_batches;
  if (state_.batch == 0) call("on_epoch_start", &Callback::on_epoch_start);
  if (state_.batch < plan_.batches) {
    // The run was saved after a step, and killed before or in the validation that was due.
    if (state_.batch > 0 && is_validation_due()) validate(feeds);
    feeds.start_epoch(state_.epoch, state_.batch, has_epoch(options_, state_.epoch + 1));
  }
  BatchGroup group;
  while (state_.batch < plan_.batches) {
    // A group of accumulated batches is never left half done.
    if (group.batches == 0 && stop_.is_met(state_)) return;
    const Stopwatch all;
    const double waited = feeds.train.waited_s();
    std::optional<data::Batch> batch =
        processes_.is_alone() ? feeds.train.next() : feeds.at(state_.batch);
    // A batch is missing when none of its images could be loaded.
    const int64_t number = batch ? batch->number : plan_.batches;
    const int64_t group_begin = number / accumulate * accumulate;
    if (group.batches > 0 && (!batch || state_.batch <= group_begin)) {
      finish_group(group);
      if (batch && stop_.is_met(state_)) return;
    }
    state_.batch = number;
    if (!batch) return;
    // Its true size: an epoch's last group may be shorter, and one may begin in its middle.
    const int64_t group_end = std::min(group_begin + accumulate, plan_.batches);
    if (group.batches == 0) group.size = group_end - number;
    train_batch(std::move(*batch), group);
    state_.batch += 1;
    if (state_.batch == group_end) finish_group(group);
    log_.add_batch(feeds.train.waited_s() - waited, all);
    if (group.batches == 0 && state_.batch < plan_.batches && is_validation_due() &&
        !stop_.is_met(state_))
      validate(feeds);
  }
}

/// Forward and backward pass of a batch, onto the group's gradients. Gives its share of the loss.
at::Tensor Training::forward_and_backward(const data::Batch& batch, const BatchGroup& group) {
  const bool averages = average_ && group.batches + 1 == group.size;
  if (average_) average_->share_buffers();
  if (averages) average_->before_forward();
  const SyncedBatchNorms synced(syncs_norms_ ? &processes_ : nullptr, task_.model());
  at::Tensor loss;
  {
    const perf::Scope scope("forward");
    const Autocast autocast(precision_, device_.type());
    loss = task_.training_step(batch);
  }
  if (!loss.defined() || loss.numel() != 1 || !loss.requires_grad())
    throw std::logic_error("training_step() gave no scalar with a graph");
  if (averages) average_->before_backward(loss);
  if (group.size > 1) loss = loss * (1.0 / static_cast<double>(group.size));
  backward(scaler_.scale(loss), options_.detect_anomaly, state_.step + 1, batch.ids);
  if (averages) average_->after_backward();
  return loss.detach().reshape({});
}

void Training::train_batch(data::Batch batch, BatchGroup& group) {
  cast(batch, precision_.parameters);
  if (std::exchange(rows_of_last_, 0) == 1 && !syncs_norms_)
    try_one_image(task_, batch, precision_);
  call("on_batch_start", &Callback::on_batch_start, &batch);
  task_.check_batch(batch);
  const bool keeps_all = options_.on_nonfinite == "dump";
  if (group.batches == 0 && keeps_all) group.before = state_;
  const auto seed = [&] { seed_step(state_, processes_.place().rank, device_); };
  const auto pass = [&](const data::Batch& one) { return forward_and_backward(one, group); };
  if (group.batches == 0 && !compiled_) seed();
  const at::Tensor loss = compiled_ ? compiled_->gradients(batch, seed, pass) : pass(batch);
  group.loss = group.loss.defined() ? group.loss + loss : loss;
  group.batches += 1;
  if (keeps_all) {
    group.kept.push_back(std::move(batch));
  } else {
    std::move(batch.ids.begin(), batch.ids.end(), std::back_inserter(group.ids));
  }
}

/// The step of a group: from its gradients to new weights.
void Training::finish_group(BatchGroup& group) {
  take_outcome();  // whether the step before was skipped decides on the learning rate
  if (group.batches < group.size) {  // the images of the others could not be loaded
    const double share = static_cast<double>(group.size) / static_cast<double>(group.batches);
    group.loss = group.loss * share;
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : task_.model().parameters()) {
      if (parameter.grad().defined()) parameter.mutable_grad().mul_(share);
    }
  }
  group.loss = processes_.mean(group.loss);
  call("on_before_step", &Callback::on_before_step);
  const Rates rates = next_rates();
  pending_ = std::make_unique<PendingStep>(
      compiled_ ? compiled_->update(rates, group.loss)
                : update(optimizer_, scaler_, options_, rates, group.loss, device_.is_cpu()));
  optimizer_.zero_grad();
  state_.step += 1;
  edge_before_ = std::exchange(edge_, state_.batch);
  pending_->number = state_.step;
  pending_->lr = state_.lr = rates.lr;
  pending_->group = std::exchange(group, {});
  if (device_.is_cpu()) take_outcome();
  context_.lr = rates.lr;
  context_.momentum = rates.momentum.value_or(optimizer_.momentum());
  log_.show_step();
  call("on_step_end", &Callback::on_step_end);
  carry_out();
}

/// Takes the newest step's numbers, once: on a CPU at the end of the step, on a GPU when they are
/// needed, so that the host does not wait for the device.
void Training::take_outcome() {
  if (!pending_) return;
  const std::unique_ptr<PendingStep> step = std::move(pending_);
  const StepOutcome outcome = step->outcome();
  context_.loss = outcome.loss;
  context_.grad_norm = outcome.grad_norm;
  if (outcome.is_finite) {
    nonfinite_.end_row();
    state_.loss_sum += outcome.loss * static_cast<double>(step->group.batches);
    state_.loss_count += step->group.batches;
  } else {
    nonfinite_.leave_out(*step, outcome, state_);
  }
  if (step->number % options_.log_every_n_steps == 0 || step->number == 1)
    log_.log_step(outcome, step->lr, /*is_clipped=*/options_.gradient_clip_val.has_value());
}

void Training::end_epoch(Feeds& feeds) {
  const bool is_due = is_validation_due();
  const TrainState before = state_;
  state_.epoch += 1;
  state_.batch = edge_ = edge_before_ = 0;
  if (state_.loss_count > 0)
    log_.log({{"train/loss_epoch", state_.loss_sum / static_cast<double>(state_.loss_count)}});
  state_.loss_sum = 0;
  state_.loss_count = 0;
  if (!plan_.has_validation) scheduler_.on_metrics(state_.metrics);  // else validate() does
  if (is_due) {
    // A validation that is cut short is repeated first when the training continues.
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
  call("on_epoch_end", &Callback::on_epoch_end);
  carry_out();
  if (processes_.is_first()) log_.tell_epoch();
}

void Training::call(const char* name, void (Callback::*hook)(Context&), const data::Batch* batch) {
  call_hook(callbacks_, name, hook, context_, batch);
}

/// What the hooks have asked for.
void Training::carry_out() {
  if (!context_.logged.empty()) log_.log(std::exchange(context_.logged, {}));
  if (std::exchange(context_.stop, false)) stop_.ask();
  if (!stop_.agree(!context_.save_to.empty())) return;
  take_outcome();
  write_checkpoint();
}

void Training::write_checkpoint() {
  state_.seconds = stop_.seconds();
  std::vector<std::string> paths = std::exchange(context_.save_to, {}),
                           remove = std::exchange(context_.remove, {});
  const auto undo = std::exchange(context_.undo_saves, {});
  if (paths.empty() || !processes_.is_first()) return;
  Snapshot snapshot = take_snapshot(objects_, state_, config_, writer_.reusable());
  writer_.write(std::move(snapshot), std::move(paths), std::move(remove), undo);
}

/// The first error matters, not those that follow from it.
void Training::on_exception(const std::string& what) {
  log_.end_progress();
  try {
    try {
      take_outcome();  // the newest step's numbers, if they are still to be had
    } catch (const std::exception&) {
    }
    writer_.wait();
    state_.batch = edge_;
    for (const auto& callback : callbacks_) {
      try {
        callback->on_exception(context_, what);
      } catch (const std::exception& error) {  // what others asked for is still to be saved
        log::warn("after the error: callbacks.{}: {}", callback->name, error.what());
      }
    }
    write_checkpoint();
    writer_.wait();
  } catch (const std::exception& error) {
    log::warn("after the error: {}", error.what());
  }
}

void Training::resume(const std::string& path, bool strict) {
  state_ = load_checkpoint(path, objects_, strict);
  stop_.start_clock(state_.seconds);
}

void Training::save(const std::string& path) {
  context_.save_to.push_back(path);
  processes_.guard([&] {
    carry_out();
    writer_.wait();
  });
}

}  // namespace cytra::training
