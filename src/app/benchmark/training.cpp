// Part of app/benchmark/measures.h: training steps.

#include <ATen/ATen.h>

#include "app/benchmark/measures.h"
#include "base/error.h"
#include "base/rng.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "data/survey/check_targets.h"
#include "device/device.h"
#include "device/fast_precision.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/scopes.h"
#include "training/callback.h"
#include "training/grad_scaler.h"
#include "training/optimizer.h"
#include "training/precision.h"
#include "training/profiler.h"
#include "training/scheduler.h"
#include "training/task.h"
#include "training/trainer/compiled_step.h"
#include "training/trainer/step.h"
#include "training/trainer_options.h"

namespace cytra::app {
namespace {

using config::Node;

constexpr std::size_t kComparedSteps = 3;
constexpr int64_t kStepsToCompile = 10;  // rehearsals, recordings and checks of CompiledStep
constexpr int64_t kSide = 16, kGap = 4;  // of the objects that targets show, and between them

/// Numbered boxes in rows, ([D,]H,W); 0 between them.
at::Tensor boxes(const std::vector<int64_t>& size) {
  const auto dims = std::ssize(size);
  at::Tensor labels = at::ones(size), numbers = at::zeros(size);
  int64_t stride = 1;
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t length = size[static_cast<std::size_t>(d)];
    std::vector<int64_t> along(static_cast<std::size_t>(dims), 1);
    along[static_cast<std::size_t>(d)] = length;
    const at::Tensor places = at::arange(length, at::kFloat);
    labels.mul_(places.remainder(kSide + kGap).lt(kSide).view(along));
    numbers.add_(places.div(kSide + kGap).floor().mul(stride).view(along));
    stride *= (length + kSide + kGap - 1) / (kSide + kGap);
  }
  return labels * (numbers + 1);
}

/// A target (C,[D,]H,W) of this meaning: boxes as objects or classes, else noise.
at::Tensor target_of(const data::TargetMeaning& meaning, const std::vector<int64_t>& size) {
  using Kind = data::TargetMeaning::Kind;
  if (meaning.kind == Kind::objects) return boxes(size).unsqueeze(0);
  const bool is_one = meaning.kind == Kind::mask || meaning.kind == Kind::classes;
  std::vector<int64_t> shape{is_one ? 1 : meaning.num_classes};
  shape.insert(shape.end(), size.begin(), size.end());
  if (meaning.kind == Kind::values) return at::randn(shape);
  const at::Tensor numbers =
      boxes(size).remainder(meaning.kind == Kind::classes ? meaning.num_classes : 2);
  at::Tensor target = numbers.clone();
  for (std::size_t c = 0; c < meaning.target_values.size(); ++c)
    target.masked_fill_(numbers == static_cast<double>(c),
                        static_cast<double>(meaning.target_values[c]));
  return target.unsqueeze(0).expand(shape).contiguous();
}

/// A batch for the task: random images, and the targets of each of its parts.
data::Batch make_batch(const Workload& workload,
                       training::Task& task,
                       int64_t batch,
                       c10::ScalarType type) {
  const Node& config = workload.config.at("task");
  const std::string x_key = task.x_key();
  const std::vector<int64_t> shape = workload.shape_of(batch), size(shape.begin() + 2, shape.end());
  const at::Tensor images = at::randn(shape);
  data::Sample sample;
  sample.id = "a random image";
  sample.tensors[x_key] = images[0];
  for (const data::TargetMeaning& meaning : task.target_meanings())
    sample.tensors[meaning.key] = target_of(meaning, size);
  const auto add_mask = [&](const Node& part) {
    if (const auto key = part.get<std::string>("mask_key", ""); !key.empty())
      sample.tensors[key] = at::ones(size).unsqueeze(0);
  };
  add_mask(config);
  if (const Node* heads = config.find("heads"); heads != nullptr)
    for (const auto& [name, head] : heads->map) add_mask(head);
  if (const auto transform = task.sample_transform(); transform != nullptr) {
    Rng rng(0);
    transform->apply(sample, rng);
  }
  data::Batch made;
  for (const auto& [key, tensor] : sample.tensors) {
    const at::Tensor all =
        key == x_key ? images : at::stack(std::vector<at::Tensor>(batch, tensor));
    made.tensors[key] = all.to(at::kFloat).to(workload.device);
  }
  training::cast(made, type);
  return made;
}

/// A training before its first step.
class Step {
 public:
  Step(const Workload& workload, const Variant& variant, int64_t batch)
      : config_(prepared(workload, variant)),
        device_(workload.device),
        options_(config::parse<training::TrainerOptions>(config_.at("trainer"))),
        precision_(device::precision_of(variant.precision)),
        scaler_(options_.grad_scaler, precision_.needs_scaling(), device_) {
    at::manual_seed(0);
    task_ = make<training::Task>(config_.at("task"));
    nn::Model& model = task_->model();
    if (!workload.checkpoint.empty()) nn::load_weights(workload.checkpoint, model);
    if (precision_.parameters != at::kFloat) nn::cast(model, precision_.parameters);
    nn::place(model, device_, device::uses_tensor_cores(variant.precision, device_));
    model.train();
    optimizer_ = make<training::Optimizer>(config_.at("optimizer"));
    optimizer_->attach(model.named_parameters().pairs());
    compiled_ = training::compile_steps(options_, model, *optimizer_, scaler_, true);
    if (variant.engine != "eager" && compiled_ == nullptr)
      throw ConfigError("recording a step as a CUDA graph needs a GPU");
    at::manual_seed(0);
    batch_ = make_batch(workload, *task_, batch, precision_.parameters);
  }

  at::Tensor loss() { return loss_of(batch_); }

  /// Takes a step. Returns the loss before it, without its graph.
  at::Tensor run() {
    const auto pass = [this](const data::Batch& batch) {
      const at::Tensor loss = loss_of(batch);
      training::backward(scaler_.scale(loss), options_.detect_anomaly, 1, {});
      return loss.detach();
    };
    const training::Rates rates{optimizer_->base_lr()};
    const auto seed = [] { at::manual_seed(0); };
    const at::Tensor loss = compiled_ ? compiled_->gradients(batch_, seed, pass) : pass(batch_);
    if (compiled_) {
      compiled_->update(rates, loss);
    } else {
      training::update(*optimizer_, scaler_, options_, rates, loss, device_.is_cpu());
    }
    optimizer_->zero_grad();
    return loss;
  }

  /// Takes two watched steps: what happens only in the first does not matter.
  void watch(const std::string& forbid) {
    training::TrainState state;
    const std::vector<std::shared_ptr<training::Logger>> loggers;
    training::Context context{state, *task_, *optimizer_, loggers};
    const auto guard = training::make_profilers({}, "", forbid).at(0);
    guard->on_fit_start(context);
    while (state.step < 2) {
      run();
      ++state.step;
      guard->on_step_end(context);
    }
    guard->on_fit_end(context);
  }

  bool is_compiled() const { return compiled_ != nullptr; }

 private:
  at::Tensor loss_of(const data::Batch& batch) {
    const perf::Scope scope("forward");
    const device::Autocast autocast(precision_, device_.type());
    return task_->training_step(batch);
  }

  const Node config_;
  const c10::Device device_;
  const training::TrainerOptions options_;
  const device::Precision precision_;
  training::GradScaler scaler_;
  std::shared_ptr<training::Task> task_;
  std::shared_ptr<training::Optimizer> optimizer_;
  std::unique_ptr<training::CompiledStep> compiled_;  // null: steps are made as they are
  data::Batch batch_;
};

}  // namespace

Ready prepare_training(const Workload& workload, const Variant& variant, int64_t batch) {
  const auto step = std::make_shared<Step>(workload, variant, batch);
  const auto losses = std::make_shared<std::vector<at::Tensor>>();  // of the first steps
  const auto run = [step, losses] {
    const at::Tensor loss = step->run();
    if (losses->size() < kComparedSteps)
      losses->push_back(loss.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true));
  };
  for (int64_t i = 0; step->is_compiled() && i < kStepsToCompile; ++i) run();
  return [run, losses, device = workload.device](const perf::Repeats& repeats) {
    Measured measured;
    device::reset_peak_memory(device);
    measured.times = perf::measure(run, repeats, device);
    measured.peak_bytes = device::peak_memory(device);
    measured.results = *losses;
    return measured;
  };
}

void watch_training(const Workload& workload, const Variant& variant, int64_t batch) {
  Step(workload, variant, batch).watch(workload.forbid_transfers);
}

nn::Flops count_training(const Workload& workload, int64_t batch) {
  Variant plain;
  plain.gradient_checkpointing = false;
  Step step(workload, plain, batch);
  return nn::count_flops([&] { step.loss(); });
}

}  // namespace cytra::app
