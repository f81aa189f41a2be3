#include "training/trainer.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "data/device_feed.h"
#include "nn/model.h"
#include "training/optimizer.h"
#include "training/profiler.h"
#include "training/scheduler.h"
#include "training/step.h"

namespace cytra::training {
namespace {

using Clock = std::chrono::steady_clock;

c10::Device device_of(const nn::Model& model) {
  const std::vector<at::Tensor> parameters = model.parameters();
  return parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().device();
}

/// Images in the type that the weights have.
void cast(data::Batch& batch, at::ScalarType type) {
  if (type == at::kFloat) return;
  const auto change = [type](at::Tensor& tensor) {
    if (tensor.is_floating_point()) tensor = tensor.to(type);
  };
  for (auto& [key, tensor] : batch.tensors) change(tensor);
  for (auto& [key, list] : batch.lists) std::for_each(list.begin(), list.end(), change);
}

/// The weights to be used are in the model while this lives.
class SwappedIn {
 public:
  SwappedIn(const std::vector<std::shared_ptr<Callback>>& callbacks, Task& task)
      : callbacks_(callbacks), task_(task) {
    for (const auto& callback : callbacks_) callback->swap_in(task_);
  }
  ~SwappedIn() {
    for (const auto& callback : callbacks_) callback->swap_out(task_);
  }
  SwappedIn(const SwappedIn&) = delete;
  SwappedIn& operator=(const SwappedIn&) = delete;

 private:
  const std::vector<std::shared_ptr<Callback>>& callbacks_;
  Task& task_;
};

}  // namespace

struct Trainer::Feeds {
  data::DeviceFeed train, valid;
  int64_t valid_batches;
};

Trainer::Trainer(TrainerOptions options,
                 Task& task,
                 Optimizer& optimizer,
                 Scheduler& scheduler,
                 std::vector<std::shared_ptr<Callback>> callbacks,
                 std::vector<std::shared_ptr<Logger>> loggers,
                 config::Node config)
    : options_(std::move(options)),
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
  for (const auto& callback : callbacks_) callback->attach(task_);
}
Trainer::~Trainer() = default;

Parts Trainer::parts() {
  return {task_, optimizer_, scheduler_, scaler_, callbacks_};
}

void Trainer::resume(const std::string& path, bool strict) {
  state_ = load_checkpoint(path, parts(), strict);
}

void Trainer::save(const std::string& path) {
  context_.save_to.push_back(path);
  carry_out();
  writer_.wait();
}

template <class Hook>
void Trainer::call(const char* name, Hook hook) {
  for (const auto& callback : callbacks_) {
    const auto fail = [&](const std::string& what) {
      throw std::runtime_error(
          fmt::format("callbacks.{} failed in {}: {}", callback->name, name, what));
    };
    try {
      at::RecordFunction scope(at::RecordScope::USER_SCOPE);  // for profilers
      if (scope.isActive() && callback->name != kProfilerName)
        scope.before(fmt::format("callbacks.{}.{}", callback->name, name));
      hook(*callback);
    } catch (const Error&) {
      throw;
    } catch (const c10::Error& error) {
      fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }
}

/// Lengths of the training, once the number of batches is known.
void Trainer::plan(int64_t batches) {
  if (batches == 0)
    throw ConfigError("the training set has no batch; check data.batch_size and data.drop_last");
  const int64_t accumulate = options_.accumulate_grad_batches;
  const int64_t steps = (batches + accumulate - 1) / accumulate;
  int64_t total = options_.max_epochs < 0 ? -1 : options_.max_epochs * steps;
  if (options_.max_steps >= 0)
    total = total < 0 ? options_.max_steps : std::min(total, options_.max_steps);
  context_.batches = batches;
  context_.total_steps = total;
  context_.total_epochs = options_.max_epochs >= 0 ? options_.max_epochs
                          : total < 0              ? -1
                                                   : (total + steps - 1) / steps;
}

void Trainer::fit(data::DataLoader& train, data::DataLoader& valid) {
  plan(train.size());
  Feeds feeds{data::DeviceFeed(train, device_), data::DeviceFeed(valid, device_), valid.size()};
  if (options_.enable_progress_bar)
    progress_ = std::make_unique<Progress>("training", context_.total_steps, state_.step);
  begin_ = Clock::now();
  seconds_before_ = state_.seconds;
  const auto has_epoch = [&] {
    return options_.max_epochs < 0 || state_.epoch < options_.max_epochs;
  };
  try {
    if (has_epoch() && !should_stop()) sanity_check(feeds);
    call("on_fit_start", [&](Callback& callback) { callback.on_fit_start(context_); });
    while (has_epoch() && !should_stop()) {
      train_epoch(feeds);
      settle();
      if (state_.batch < context_.batches) break;
      end_epoch(feeds);
    }
    if (feeds.valid_batches > 0 && state_.validated_at != state_.step) validate(feeds);
    call("on_fit_end", [&](Callback& callback) { callback.on_fit_end(context_); });
    carry_out();
  } catch (const std::exception& error) {
    on_exception(error.what());
    throw;
  }
  if (progress_) progress_->finish();
  writer_.wait();
}

/// The error under way matters, not those of its aftermath.
void Trainer::on_exception(const std::string& what) {
  if (progress_) progress_->finish();
  try {
    pending_.reset();
    writer_.wait();
    for (const auto& callback : callbacks_) callback->on_exception(context_, what);
    carry_out();
    writer_.wait();
  } catch (const std::exception& error) {
    log::warn("after the error: {}", error.what());
  }
}

bool Trainer::should_stop() const {
  if (signal_received() != 0) return true;
  if (options_.max_steps >= 0 && state_.step >= options_.max_steps) return true;
  if (options_.max_seconds >= 0 && seconds() >= options_.max_seconds) return true;
  return stop_ && state_.epoch >= options_.min_epochs && state_.step >= options_.min_steps;
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
    if (state_.batch > 0 && is_validation_due() && feeds.valid_batches > 0) validate(feeds);
    feeds.train.start_epoch(state_.epoch, state_.batch, more);
  }
  Group group;
  while (state_.batch < context_.batches) {
    // A group of accumulated batches is never left half done.
    if (group.batches == 0 && should_stop()) return;
    const auto begin = Clock::now();
    const double waited = feeds.train.waited_s();
    std::optional<data::Batch> batch = feeds.train.next();
    // A batch is missing when none of its images could be loaded.
    const int64_t number = batch ? batch->number : context_.batches;
    const int64_t group_begin = number / accumulate * accumulate;
    if (group.batches > 0 && (!batch || state_.batch <= group_begin)) {
      apply(group);
      if (batch && should_stop()) return;
    }
    state_.batch = number;
    if (!batch) return;
    // The last group of an epoch may be shorter: weigh by its true size.
    group.size = std::min(accumulate, context_.batches - group_begin);
    train_batch(std::move(*batch), group);
    state_.batch += 1;
    if (state_.batch == group_begin + group.size) apply(group);
    timing_.add(feeds.train.waited_s() - waited, begin);
    if (group.batches == 0 && state_.batch < context_.batches && feeds.valid_batches > 0 &&
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
  if (keeps_all && group.batches == 0) {
    group.before = state_;
    group.generators = generator_states(task_.model());
  }
  at::Tensor loss;
  {
    RECORD_USER_SCOPE("forward");
    const Autocast autocast(precision_, device_.type());
    loss = task_.training_step(batch);
  }
  if (!loss.defined() || loss.numel() != 1 || !loss.requires_grad())
    throw std::logic_error("training_step() gave no scalar with a graph");
  const at::Tensor value = loss.detach();
  if (group.size == 1) {
    group.loss = value;
    backward(scaler_.scale(loss), options_.detect_anomaly, state_.step + 1, batch.ids);
  } else {
    const double weight = 1.0 / static_cast<double>(group.size);
    group.loss = group.loss.defined() ? group.loss + value * weight : value * weight;
    backward(scaler_.scale(loss * weight), options_.detect_anomaly, state_.step + 1, batch.ids);
  }
  group.batches += 1;
  if (keeps_all) {
    group.kept.push_back(std::move(batch));
  } else {
    std::move(batch.ids.begin(), batch.ids.end(), std::back_inserter(group.ids));
  }
}

void Trainer::apply(Group& group) {
  settle();  // whether the step before was skipped decides on the learning rate
  call("on_before_step", [&](Callback& callback) { callback.on_before_step(context_); });
  const Position position{
      state_.step - state_.skipped, context_.total_steps, state_.epoch, context_.total_epochs};
  const Rates rates = scheduler_.at(optimizer_.base_lr(), position);
  pending_ = std::make_unique<Pending>(
      update(optimizer_, scaler_, options_, rates, group.loss, device_.is_cpu()));
  optimizer_.zero_grad();
  state_.step += 1;
  pending_->step = state_.step;
  pending_->lr = rates.lr;
  pending_->group = std::exchange(group, {});
  if (device_.is_cpu()) settle();
  context_.lr = rates.lr;
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
    const std::string folder = config_.get<std::string>("paths.output_dir", ".") + "/nonfinite";
    advice = fmt::format("the step again: checkpoint.ckpt_path={}; {}",
                         dump(step, parts(), config_, folder),
                         advice);
  }
  throw DivergedError(what + "; " + advice);
}

void Trainer::end_epoch(Feeds& feeds) {
  const bool is_due = is_validation_due();
  state_.epoch += 1;
  state_.batch = 0;
  if (state_.loss_count > 0)
    log({{"train/loss_epoch", state_.loss_sum / static_cast<double>(state_.loss_count)}});
  state_.loss_sum = 0;
  state_.loss_count = 0;
  if (is_due && feeds.valid_batches > 0) validate(feeds);
  if (signal_received() != 0) return;
  call("on_epoch_end", [&](Callback& callback) { callback.on_epoch_end(context_); });
  carry_out();
}

/// After the step that just ended? Then one was due among its batches.
bool Trainer::is_validation_due() const {
  if (state_.validated_at == state_.step) return false;
  const Amount& given = options_.val_check_interval;
  const int64_t batches = context_.batches;
  const auto share = static_cast<int64_t>(given.share * static_cast<double>(batches));
  const int64_t interval = given.count >= 0 ? given.count : std::max<int64_t>(1, share);
  const int64_t accumulate = options_.accumulate_grad_batches;
  int64_t from = (state_.batch - 1) / accumulate * accumulate, to = state_.batch;
  if (!options_.check_val_every_n_epoch) {
    from += state_.epoch * batches;
    to += state_.epoch * batches;
  } else if ((state_.epoch + 1) % *options_.check_val_every_n_epoch != 0) {
    return false;
  }
  return to / interval > from / interval;
}

void Trainer::sanity_check(Feeds& feeds) {
  const int64_t asked = options_.num_sanity_val_steps;
  const int64_t batches = asked < 0 ? feeds.valid_batches : std::min(asked, feeds.valid_batches);
  if (batches > 0 && state_.step == 0) run_validation(feeds.valid, batches, "val", false);
}

void Trainer::validate(Feeds& feeds) {
  settle();
  const Metrics metrics = run_validation(feeds.valid, feeds.valid_batches, "val", true);
  if (signal_received() != 0) return;  // of some of the images only
  state_.validated_at = state_.step;
  log(metrics);
  scheduler_.on_metrics(state_.metrics);
  std::string line = fmt::format("epoch {} step {}", state_.epoch, state_.step);
  if (context_.total_steps >= 0) line += fmt::format("/{}", context_.total_steps);
  line += ":";
  for (const auto& [name, value] : metrics) line += fmt::format(" {} {:.4f}", name, value);
  log::info("{}", line);
  call("on_validation_end", [&](Callback& callback) { callback.on_validation_end(context_); });
  carry_out();
}

Metrics Trainer::run_validation(data::DeviceFeed& feed,
                                int64_t batches,
                                const std::string& stage,
                                bool has_callbacks) {
  RECORD_USER_SCOPE("validation");
  nn::Model& model = task_.model();
  const bool was_training = model.is_training();
  const SwappedIn swapped(callbacks_, task_);
  model.eval();
  {
    const c10::InferenceMode inference(options_.inference_mode);
    const at::NoGradGuard no_grad;
    const Autocast autocast(precision_, device_.type());
    if (has_callbacks)
      call("on_validation_start", [&](Callback& one) { one.on_validation_start(context_); });
    feed.start_epoch(0);
    for (int64_t b = 0; b < batches && signal_received() == 0; ++b) {
      std::optional<data::Batch> batch = feed.next();
      if (!batch) break;
      cast(*batch, precision_.parameters);
      task_.validation_step(*batch);
      if (!has_callbacks) continue;
      context_.batch = &*batch;
      call("on_validation_batch", [&](Callback& one) { one.on_validation_batch(context_); });
      context_.batch = nullptr;
    }
  }
  Metrics metrics;
  for (const auto& [name, value] : task_.validation_end()) metrics[stage + "/" + name] = value;
  model.train(was_training);
  return metrics;
}

Metrics Trainer::evaluate(data::DataLoader& loader, const std::string& stage) {
  data::DeviceFeed feed(loader, device_);
  const Metrics metrics = run_validation(feed, loader.size(), stage, false);
  if (signal_received() == 0) log(metrics);
  return metrics;
}

void Trainer::carry_out() {
  if (!context_.logged.empty()) log(std::exchange(context_.logged, {}));
  if (!context_.save_to.empty()) {
    settle();
    if (progress_) state_.seconds = seconds();
    Snapshot snapshot = take_snapshot(parts(), state_, config_, writer_.reusable());
    writer_.write(std::move(snapshot),
                  std::exchange(context_.save_to, {}),
                  std::exchange(context_.remove, {}));
  }
  stop_ = stop_ || std::exchange(context_.stop, false);
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
  log(metrics, {{"data_time", times.data_s()}, {"step_time", times.step_s()}});
  note_ = fmt::format("epoch {} loss {:.4f} lr {:.2e}", state_.epoch, outcome.loss, step.lr);
  for (const auto& [name, value] : state_.metrics) {
    if (name.rfind("val/", 0) == 0) note_ += fmt::format(" {} {:.4f}", name, value);
  }
}

}  // namespace cytra::training
