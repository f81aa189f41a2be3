#pragma once
// One optimizer step: from gradients to weights.
#include <optional>
#include <string>
#include <vector>

#include "data/loader/batch.h"
#include "training/callback.h"
#include "training/readback.h"

namespace cytra::training {

class GradScaler;
struct Rates;
struct TrainerOptions;

/// What became of a step.
struct StepOutcome {
  double loss = 0, grad_norm = 0;  // the joint norm, unscaled, before clipping
  bool is_finite = true;           // else nothing was changed
};

/// The batches whose gradients make one step.
struct BatchGroup {
  int64_t size = 1, batches = 0;  // planned; done so far
  at::Tensor loss;                // mean over the batches, on the device
  std::vector<std::string> ids;
  // The batches, and where the training stood before them, kept with on_nonfinite=dump.
  std::vector<data::Batch> kept;
  TrainState before;
};

/// A step whose numbers may still be on their way from the device.
struct PendingStep {
  StepOutcome known;               // where nothing is on its way
  std::optional<Readback> coming;  // loss, norm, finite or not
  int64_t number = 0;              // of the step, from 1
  double lr = 0;
  BatchGroup group = {};

  StepOutcome outcome() const;  // waits for the numbers
};

/// Sets torch's generators (the CPU's and the device's) for the step after state.step: what a step
/// draws (dropout) is a function of state.seed, the process and the step, so that no checkpoint
/// has to hold generators, and a training that is resumed between any two steps draws the same
/// numbers.
void seed_step(const TrainState& state, int64_t rank, c10::Device device);

/// loss.backward(), of the step with this number and samples. With `detects_anomaly` a NaN that the
/// backward pass of a finite loss makes ends the run. Throws: DivergedError that names the
/// operation.
void backward(const at::Tensor& loss,
              bool detects_anomaly,
              int64_t step,
              const std::vector<std::string>& ids);

/// Unscales and clips the gradients and updates the weights: one pass over the gradients for their
/// norm, which also shows whether they are finite, and one fused update that divides by scale and
/// clipping together. When loss or gradients are not finite, nothing changes but the scale.
/// `reads_at_once`: the host decides (a CPU); else the device does, and nothing waits for it.
/// Source: torch.amp.GradScaler.unscale_/step/update and torch.nn.utils.clip_grad_norm_ / _value_.
PendingStep update(Optimizer& optimizer,
                   GradScaler& scaler,
                   const TrainerOptions& options,
                   const Rates& rates,
                   const at::Tensor& loss,
                   bool reads_at_once);
/// update() by the device alone, for steps that are recorded. `lr`: 0-d float on the device, in
/// place of that of `rates`; undefined: none. Gives loss, norm and, where they are not finite, 1
/// else 0: what a PendingStep waits for.
std::vector<at::Tensor> update_on_device(Optimizer& optimizer,
                                         GradScaler& scaler,
                                         const TrainerOptions& options,
                                         const Rates& rates,
                                         const at::Tensor& loss,
                                         const at::Tensor& lr = {});

}  // namespace cytra::training
