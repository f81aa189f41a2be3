#include "training/trainer/step.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/strings.h"
#include "perf/scopes.h"
#include "training/grad_scaler.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {

constexpr double kEpsilon = 1e-6;  // of torch.nn.utils.clip_grad_norm_

PendingStep update_by_host(Optimizer& optimizer,
                           GradScaler& scaler,
                           const TrainerOptions& options,
                           const Rates& rates,
                           const at::Tensor& loss) {
  const double limit = options.gradient_clip_val.value_or(0);
  const bool clips_values = options.gradient_clip_algorithm == "value";
  const double scale = scaler.factor().defined() ? scaler.factor().item<double>() : 1;
  PendingStep step;
  step.known.loss = loss.item<double>();
  step.known.grad_norm =
      optimizer.gradient_norm(options.gradient_clip_norm_type).item<double>() / scale;
  step.known.is_finite = std::isfinite(step.known.loss) && std::isfinite(step.known.grad_norm);
  if (step.known.is_finite) {
    double divisor = scale;
    if (limit > 0 && clips_values) {
      optimizer.clip_grad_value(limit * scale);
    } else if (limit > 0) {
      divisor /= std::min(1.0, limit / (step.known.grad_norm + kEpsilon));
    }
    Optimizer::Step how{rates.lr, rates.momentum};
    if (divisor != 1) how.grad_scale = at::scalar_tensor(divisor, at::TensorOptions(at::kFloat));
    optimizer.step(how);
  }
  if (scaler.factor().defined())
    scaler.update(at::scalar_tensor(step.known.is_finite ? 0 : 1, at::TensorOptions(at::kFloat)));
  return step;
}

}  // namespace

StepOutcome PendingStep::outcome() const {
  if (!coming) return known;
  const std::vector<double> numbers = coming->wait();
  return {numbers[0], numbers[1], numbers[2] == 0};
}

void seed_step(const TrainState& state, int64_t rank, c10::Device device) {
  const uint64_t seed = Rng(static_cast<uint64_t>(state.seed),
                            static_cast<uint64_t>(rank),
                            static_cast<uint64_t>(state.step))
                            .next();
  const auto set = [seed](c10::Device of) {
    at::Generator generator = at::globalContext().defaultGenerator(of);
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(seed);
  };
  set(at::kCPU);
  if (!device.is_cpu()) set(device);
}

void backward(const at::Tensor& loss,
              bool detects_anomaly,
              int64_t step,
              const std::vector<std::string>& ids) {
  const perf::Scope scope("backward");
  // The mode is on for the backward pass alone: in the forward pass torch would record only stacks
  // of its own code.
  const bool checks = detects_anomaly && std::isfinite(loss.item<double>());
  if (!checks) return loss.backward();
  struct Silent final : c10::WarningHandler {  // torch warns of the same and then throws
    void process(const c10::Warning& /*warning*/) override {}
  } silent;
  const c10::WarningUtils::WarningHandlerGuard no_warning(&silent);
  const torch::autograd::DetectAnomalyGuard anomaly;
  try {
    loss.backward();
  } catch (const c10::Error& error) {  // Function 'LogBackward0' returned nan values in ...
    const std::string what = error.what_without_backtrace();
    if (what.find("returned nan values") == std::string::npos) throw;
    throw DivergedError(
        "a gradient is nan at step {} (samples: {}): {}", step, join(ids, ", "), what);
  }
}

PendingStep update(Optimizer& optimizer,
                   GradScaler& scaler,
                   const TrainerOptions& options,
                   const Rates& rates,
                   const at::Tensor& loss,
                   bool reads_at_once) {
  const perf::Scope scope("optimizer");
  const at::NoGradGuard no_grad;
  if (reads_at_once) return update_by_host(optimizer, scaler, options, rates, loss);
  PendingStep step;
  step.coming.emplace(update_on_device(optimizer, scaler, options, rates, loss));
  return step;
}

std::vector<at::Tensor> update_on_device(Optimizer& optimizer,
                                         GradScaler& scaler,
                                         const TrainerOptions& options,
                                         const Rates& rates,
                                         const at::Tensor& loss,
                                         const at::Tensor& lr) {
  const at::NoGradGuard no_grad;
  const double limit = options.gradient_clip_val.value_or(0);
  const at::Tensor& scale = scaler.factor();
  at::Tensor norm = optimizer.gradient_norm(options.gradient_clip_norm_type);
  if (scale.defined()) norm = norm / scale;
  const at::Tensor found_inf = (norm + loss * 0).isfinite().logical_not().to(at::kFloat);
  at::Tensor divisor = scale;
  if (limit > 0 && options.gradient_clip_algorithm == "value") {
    optimizer.clip_grad_value(limit, scale);
  } else if (limit > 0) {
    const at::Tensor shrink = (limit / (norm + kEpsilon)).clamp_max(1.0);
    divisor = (scale.defined() ? scale / shrink : shrink.reciprocal()).to(at::kFloat);
  }
  optimizer.step({rates.lr, rates.momentum, divisor, found_inf, lr});
  scaler.update(found_inf);
  return {loss, norm, found_inf};
}

}  // namespace cytra::training
