#include "training/trainer/evaluator.h"

#include <optional>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "base/nan_sign.h"
#include "base/signals.h"
#include "data/loader/device_feed.h"
#include "nn/model.h"
#include "perf/scopes.h"
#include "report/findings.h"
#include "training/processes/processes.h"
#include "training/swapped_in.h"
#include "training/trainer/each_image.h"
#include "training/trainer/step.h"
#include "training/trainer/stop_condition.h"
#include "training/trainer_options.h"

namespace cytra::training {

Evaluator::Evaluator(const TrainerOptions& options,
                     Task& task,
                     const std::vector<std::shared_ptr<Callback>>& callbacks,
                     const TrainState& state,
                     Processes& processes,
                     StopCondition& stop,
                     c10::Device device)
    : task_(task),
      callbacks_(callbacks),
      state_(state),
      processes_(processes),
      stop_(stop),
      device_(device),
      precision_(precision_of(options.precision)),
      uses_inference_mode_(options.inference_mode) {}

Metrics Evaluator::evaluate(data::DeviceFeed& feed,
                            int64_t batches,
                            const std::string& stage,
                            Weights weights,
                            const Hooks& hooks) {
  const perf::Scope scope("validation");
  const BreakableWork breakable(processes_.is_alone());  // else the others would wait
  seed_step(state_, processes_.place().rank, device_);   // what a task draws, also when made again
  nn::Model& model = task_.model();
  const bool was_training = model.is_training();
  std::optional<SwappedIn> swapped;
  if (weights == Weights::swapped_in) swapped.emplace(callbacks_, task_);
  model.eval();
  {
    const c10::InferenceMode inference(uses_inference_mode_);
    const at::NoGradGuard no_grad;
    const Autocast autocast(precision_, device_.type());
    if (hooks.before_first_batch) hooks.before_first_batch();
    feed.start_epoch(0);
    std::optional<EachImage> each;
    if (hooks.findings != nullptr && EachImage::tells(task_)) each.emplace(task_);
    for (int64_t done = 0; done < batches && !stop_.is_interrupted(); ++done) {
      if (hooks.is_over && hooks.is_over()) break;
      std::optional<data::Batch> batch = feed.next();
      if (!batch) break;
      cast(*batch, precision_.parameters);
      task_.validation_step(*batch);
      if (each) each->take(*batch);
      if (hooks.after_batch) hooks.after_batch(*batch, done + 1);
    }
    if (each) each->give_back();
    processes_.sum(task_.sums());
    task_.gather([this](const Tensor& rows) { return processes_.gather(rows); });
    if (each) *hooks.findings = each->findings();
    stop_.agree();  // whether all have seen all of their images
  }
  Metrics metrics;
  for (const auto& [name, value] : task_.validation_end())
    metrics[stage + "/" + name] = without_nan_sign(value);
  model.train(was_training);
  return metrics;
}

}  // namespace cytra::training
