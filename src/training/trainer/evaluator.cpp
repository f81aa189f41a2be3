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
#include "training/trainer/step.h"
#include "training/trainer/stop_condition.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {

/// What a task finds in each image of a validation, without a second measurement: all that it
/// counts is taken from it after each image, and given back at the end.
class EachImage {
 public:
  explicit EachImage(Task& task) : task_(task) {}
  /// Called after validation_step(); waits for no device. Only batches of one image are told.
  void take(const data::Batch& batch);
  /// The task has counted all images, as if nothing had been taken.
  void give_back() { put(all_); }
  /// The findings of all images that the task has counted, and of each of this process's first
  /// thousand.
  report::Findings findings();

 private:
  struct Counted {
    std::string image;
    std::vector<Tensor> sums;
    std::vector<std::vector<Tensor>> lists;
  };
  Counted taken();
  void put(const Counted& counted);

  Task& task_;
  Counted all_;
  std::vector<Counted> images_;
};

EachImage::Counted EachImage::taken() {
  Counted counted;
  for (const Tensor& sum : task_.sums()) {
    counted.sums.push_back(sum.clone());
    sum.zero_();
  }
  task_.gather([&](const Tensor& rows) {
    counted.lists.push_back({rows.clone()});
    return rows.slice(0, 0, 0);
  });
  return counted;
}

void EachImage::put(const Counted& counted) {
  const std::vector<Tensor> sums = task_.sums();
  for (std::size_t s = 0; s < counted.sums.size(); ++s) sums[s].copy_(counted.sums[s]);
  std::size_t list = 0;
  task_.gather([&](const Tensor& rows) {
    return counted.lists.empty() ? rows : at::cat(counted.lists[list++]);
  });
}

void EachImage::take(const data::Batch& batch) {
  constexpr std::size_t kMostImages = 1000;
  constexpr int64_t kMostNumbers = 4096;  // more have confusions of many classes
  Counted one = taken();
  int64_t numbers = 0;
  for (const Tensor& sum : one.sums) numbers += sum.numel();
  if (all_.sums.empty() && all_.lists.empty()) {
    all_.lists.resize(one.lists.size());
    for (const Tensor& sum : one.sums) all_.sums.push_back(at::zeros_like(sum));
  }
  for (std::size_t s = 0; s < one.sums.size(); ++s) all_.sums[s].add_(one.sums[s]);
  for (std::size_t l = 0; l < one.lists.size(); ++l) all_.lists[l].push_back(one.lists[l].front());
  if (batch.ids.size() != 1 || images_.size() == kMostImages || numbers > kMostNumbers) return;
  one.image = batch.ids.front();
  images_.push_back(std::move(one));
}

report::Findings EachImage::findings() {
  report::Findings found = task_.findings();
  const Counted total = taken();
  for (const Counted& one : images_) {
    put(one);
    found.images.push_back(task_.findings().all);
    found.images.back().name = one.image;
  }
  put(total);
  return found;
}

}  // namespace

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
    if (hooks.findings != nullptr && !task_.findings().all.metrics.empty()) each.emplace(task_);
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
