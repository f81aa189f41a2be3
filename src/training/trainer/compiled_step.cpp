#include "training/trainer/compiled_step.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/stopwatch.h"
#include "device/device.h"
#include "device/error.h"
#include "device/memory.h"
#include "nn/model.h"
#include "perf/scopes.h"
#include "training/grad_scaler.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {

constexpr int64_t kRehearsals = 3;      // as torch.cuda.make_graphed_callables
constexpr int64_t kChecks = 2;          // a number of the host that is baked in shows in the second
constexpr std::size_t kMostShapes = 8;  // each keeps its gradients
// The number of passes over a shape that are timed, after those in which libraries initialise
// themselves.
constexpr int64_t kUntimed = 2, kTimed = 3;
constexpr double kBusy = 0.5;  // a host that is, for so much of a pass, keeps the device waiting
// A share of the norm of all values: sums in another order differ by less, other random numbers by
// more.
constexpr double kTolerance = 1e-2;

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copied;
  for (const at::Tensor& tensor : tensors)
    copied.push_back(tensor.defined() ? tensor.detach().clone() : at::Tensor());
  return copied;
}

void restore(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].defined()) tensors[i].detach().copy_(values[i]);
  }
}

/// The joint norm of all a - b, or of all a without any b.
double distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b = {}) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!b.empty() && a[i].defined() != b[i].defined()) return INFINITY;
    if (!a[i].defined()) continue;
    at::Tensor difference = a[i].detach().to(at::kFloat);
    if (!b.empty()) difference = difference - b[i];
    squares += difference.square().sum(at::kDouble).item<double>();
  }
  return std::sqrt(squares);
}

/// Whether each of `now` changed from `before` in the same way as `after`.
bool has_changed_alike(const std::vector<at::Tensor>& before,
                       const std::vector<at::Tensor>& after,
                       const std::vector<at::Tensor>& now) {
  constexpr double kRounding = 1e-6;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double change = distance({after[i]}, {before[i]});
    if (!(distance({now[i]}, {after[i]}) <= kTolerance * change + kRounding * distance({after[i]})))
      return false;
  }
  return true;
}

/// All that a recording depends on except its inputs' values.
std::string key_of(const data::Batch& batch, const std::vector<at::Tensor>& parameters) {
  std::string key;
  for (const auto& [name, tensor] : batch.tensors) {
    key += fmt::format("{} {} ({}) strides ({}); ",
                       name,
                       c10::toString(tensor.scalar_type()),
                       fmt::join(tensor.sizes(), ","),
                       fmt::join(tensor.strides(), ","));
  }
  for (const at::Tensor& parameter : parameters) key += parameter.requires_grad() ? '1' : '0';
  return key;
}

std::string shapes_text(const data::Batch& batch) {
  std::string text;
  for (const auto& [name, tensor] : batch.tensors)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, fmt::join(tensor.sizes(), "x"));
  return text;
}

}  // namespace

CompiledStep::CompiledStep(std::unique_ptr<device::Recorder> recorder,
                           const TrainerOptions& options,
                           nn::Model& model,
                           Optimizer& optimizer,
                           GradScaler& scaler,
                           bool in_any_case)
    : recorder_(std::move(recorder)),
      options_(options),
      optimizer_(optimizer),
      scaler_(scaler),
      parameters_(model.parameters()),
      buffers_(model.buffers()),
      lr_(at::zeros({}, parameters_.front().options().dtype(at::kFloat).requires_grad(false))),
      is_decided_(in_any_case) {
  for (const at::Tensor& parameter : parameters_) states_.push_back(parameter);
  for (const auto& [name, tensor] : optimizer.state()) states_.push_back(tensor);
  for (const auto& [name, tensor] : scaler.state()) states_.push_back(tensor);
}

at::Tensor CompiledStep::gradients(const data::Batch& batch,
                                   const std::function<void()>& seed,
                                   const std::function<at::Tensor(const data::Batch&)>& pass) {
  now_ = is_decided_ ? shape_of(batch) : nullptr;
  if (now_ == nullptr) {
    seed();
    return is_decided_ || nn::watcher != nullptr ? pass(batch) : time(batch, pass);
  }
  Shape& shape = *now_;
  const bool is_new = shape.batch.tensors.empty();
  auto tensors = std::move(shape.batch.tensors);
  shape.batch = batch;  // with what is not a tensor
  for (auto& [name, tensor] : shape.batch.tensors)
    tensor = is_new ? tensor.clone() : tensors.at(name).copy_(tensor);
  const auto work = [&] {
    optimizer_.zero_grad();
    std::vector<at::Tensor> outputs{pass(shape.batch)};
    for (const at::Tensor& parameter : parameters_) outputs.push_back(parameter.grad());
    return outputs;
  };
  const std::vector<at::Tensor> outputs = run(shape.gradients, work, buffers_, seed);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].mutable_grad() = outputs[i + 1];
  const device::Recorder::Recording* recording = shape.gradients.recording.get();
  shape.is_steady = recording == nullptr || outputs.front().is_same(recording->outputs.front());
  if (shape.gradients.checks == kChecks && !std::exchange(shape.is_told, true))
    log::info("model.compile_model: steps of {} are recorded", shapes_text(batch));
  forget_if_given_up();
  return outputs.front();
}

PendingStep CompiledStep::update(const Rates& rates, const at::Tensor& loss) {
  const perf::Scope scope("optimizer");
  if (!optimizer_.can_be_recorded() || rates.momentum)
    return training::update(
        optimizer_, scaler_, options_, rates, loss, /*reads_at_once=*/loss.is_cpu());
  lr_.fill_(rates.lr);
  const auto work = [&] {
    return update_on_device(optimizer_, scaler_, options_, rates, loss, lr_);
  };
  std::vector<at::Tensor> outputs;
  if (now_ == nullptr || !now_->is_steady) {
    outputs = work();
  } else {
    std::vector<at::Tensor> changed = states_;  // and the gradients, which become their quotients
    for (const at::Tensor& parameter : parameters_) changed.push_back(parameter.grad());
    outputs = run(now_->update, work, changed, [] {});
  }
  forget_if_given_up();
  PendingStep step;
  step.coming.emplace(outputs);
  return step;
}

/// Makes a pass without recording, and decides when enough passes were timed.
at::Tensor CompiledStep::time(const data::Batch& batch,
                              const std::function<at::Tensor(const data::Batch&)>& pass) {
  Pace& pace = paces_[key_of(batch, parameters_)];
  const bool is_timed = ++pace.passes > kUntimed;
  if (is_timed) recorder_->wait();
  const Stopwatch stopwatch;
  at::Tensor loss = pass(batch);
  if (is_timed) {
    pace.asked_s = std::min(pace.asked_s, stopwatch.seconds());
    recorder_->wait();
    pace.done_s = std::min(pace.done_s, stopwatch.seconds());
  }
  const bool repeats = batch.lists.empty() && paces_.size() <= kMostShapes;
  if (repeats && pace.passes < kUntimed + kTimed) return loss;
  if (!repeats || !pays(pace)) recorder_ = nullptr;
  is_decided_ = true;
  paces_.clear();
  return loss;
}

bool CompiledStep::pays(const Pace& pace) const {
  const c10::Device device = parameters_.front().device();
  const bool is_launch_bound = pace.asked_s >= kBusy * pace.done_s;
  // The memory for a recording's activations, and for the copies that it is checked with.
  const bool has_memory = 2 * device::peak_memory(device) < device::free_memory(device);
  log::debug("model.compile_model: the host asks for a pass in {:.3g} ms, it takes {:.3g} ms{}",
             1e3 * pace.asked_s,
             1e3 * pace.done_s,
             has_memory ? "" : ", and memory to record it is missing");
  return is_launch_bound && has_memory;
}

/// Null: this batch's step is made as it is.
CompiledStep::Shape* CompiledStep::shape_of(const data::Batch& batch) {
  if (recorder_ == nullptr) return nullptr;
  if (nn::watcher != nullptr) {  // it would see nothing of a recording
    if (!std::exchange(has_told_of_watcher_, true))
      log::info("model.compile_model: steps run without recording while a callback watches layers");
    return nullptr;
  }
  if (!batch.lists.empty()) {
    give_up("data.collate=list gives images of any size");
    return nullptr;
  }
  const std::string key = key_of(batch, parameters_);
  const auto known = shapes_.find(key);
  if (known != shapes_.end()) return &known->second;
  if (shapes_.size() < kMostShapes) return &shapes_[key];
  if (!std::exchange(has_warned_of_shapes_, true)) {
    log::info(
        "model.compile_model: batches have more than {} shapes; steps of other shapes ({}) run "
        "without recording",
        kMostShapes,
        shapes_text(batch));
  }
  return nullptr;
}

std::vector<at::Tensor> CompiledStep::run(RecordedWork& recorded,
                                          const device::Recorder::Work& work,
                                          const std::vector<at::Tensor>& changed,
                                          const std::function<void()>& seed) {
  seed();
  if (recorded.recording && recorded.checks == kChecks) {
    recorded.recording->replay();
    return recorded.recording->outputs;
  }
  std::vector<at::Tensor> before;
  try {
    before = copies(changed);
    if (!recorded.recording) {
      const std::lock_guard alone(device::recording_mutex());
      if (recorded.rehearsals < kRehearsals)
        return recorder_->rehearse(work, /*may_wait=*/++recorded.rehearsals < kRehearsals);
      recorded.recording = recorder_->record(work);
    }
    return check(recorded, work, changed, before, seed);
  } catch (const device::NotRecordable& error) {
    give_up(error.what());
  } catch (const std::exception& error) {
    if (!device::is_out_of_memory(error)) throw;
    give_up("memory to record and check them is missing");
  }
  if (!before.empty()) restore(changed, before);
  before.clear();
  recorded.recording.reset();
  seed();
  return work();
}

/// Makes the step without the recording, then again with it, and compares.
std::vector<at::Tensor> CompiledStep::check(RecordedWork& recorded,
                                            const device::Recorder::Work& work,
                                            const std::vector<at::Tensor>& changed,
                                            const std::vector<at::Tensor>& before,
                                            const std::function<void()>& seed) {
  seed();
  const std::vector<at::Tensor> outputs = copies(work()), after = copies(changed);
  restore(changed, before);
  seed();
  recorded.recording->replay();
  const std::vector<at::Tensor>& played = recorded.recording->outputs;
  const double size = distance(outputs), error = distance(played, outputs);
  const bool is_judged = std::isfinite(size);  // else it says nothing: the next one counts
  if (is_judged && error <= kTolerance * size && has_changed_alike(before, after, changed)) {
    recorded.checks += 1;
    return played;
  }
  restore(changed, after);
  if (is_judged) {
    give_up(fmt::format(
        "the recorded step gave other numbers than the step itself (by {:.2g} of {:.2g}): it "
        "depends on more than its batch, for example on something that the host counts",
        error,
        size));
  }
  return outputs;
}

void CompiledStep::give_up(const std::string& why) {
  log::info("model.compile_model: steps run as usual and are not recorded: {}", why);
  recorder_ = nullptr;
}

void CompiledStep::forget_if_given_up() {
  if (recorder_ != nullptr) return;
  now_ = nullptr;
  shapes_.clear();
}

std::unique_ptr<CompiledStep> compile_steps(const TrainerOptions& options,
                                            nn::Model& model,
                                            Optimizer& optimizer,
                                            GradScaler& scaler,
                                            bool is_alone) {
  const nn::ModelOptions& asked = model.settings;
  // left open, the one that records nothing has its effect
  if (asked.compile_mode != "default" &&
      !asked.compile_model.value_or(asked.compile_mode == "max-autotune-no-cudagraphs"))
    log::info("model.compile_mode={}: no effect: model.compile_model is not true",
              asked.compile_mode);
  const std::vector<at::Tensor> parameters = model.parameters();
  if (asked.compile_model == false || parameters.empty()) return nullptr;
  const bool is_open = !asked.compile_model;
  const auto say = [&](const std::string& what) {
    log::write(is_open ? log::Level::debug : log::Level::info, "model.compile_model: " + what);
  };
  const auto reason = [&]() -> std::string {
    if (asked.compile_mode == "max-autotune-no-cudagraphs")
      return "model.compile_mode=max-autotune-no-cudagraphs";
    if (!is_alone) return "several processes train together";
    if (options.accumulate_grad_batches > 1)
      return fmt::format("trainer.accumulate_grad_batches={}", options.accumulate_grad_batches);
    if (options.detect_anomaly) return "trainer.detect_anomaly=true looks at every loss";
    if (asked.gradient_checkpointing)
      return "model.gradient_checkpointing=true sets back the random numbers in the backward pass";
    if (is_open && !options.profiler.is_null())
      return "trainer.profiler sees more of steps that are not recorded";
    return "";
  }();
  try {
    if (!reason.empty()) throw device::NotRecordable(reason);
    auto recorder = device::make_recorder(parameters.front().device());
    if (!optimizer.can_be_recorded())
      say(fmt::format("forward and backward pass are recorded, the update of {} is not",
                      optimizer.name()));
    return std::make_unique<CompiledStep>(
        std::move(recorder), options, model, optimizer, scaler, /*in_any_case=*/!is_open);
  } catch (const device::NotRecordable& error) {
    say(fmt::format("steps run as usual and are not recorded: {}", error.what()));
    return nullptr;
  }
}

}  // namespace cytra::training
