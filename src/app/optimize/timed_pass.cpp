#include "app/optimize/timed_pass.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/setup/train_data.h"
#include "base/error.h"
#include "data/loader/device_feed.h"
#include "device/device.h"
#include "perf/measure.h"
#include "training/batch_size.h"
#include "training/precision.h"

namespace cytra::app {
namespace {

/// The first batch of a split; none where the split has no batch.
std::optional<data::Batch> first_batch(const Setup& setup, data::Split split) {
  data::DataLoaderSpec spec = loader_spec(setup, split);
  if (spec.items.empty()) return std::nullopt;
  spec.options.num_workers = 0;
  spec.limit = [](int64_t batches) { return std::min<int64_t>(batches, 1); };
  data::DataLoader loader(std::move(spec));
  data::DeviceFeed feed(loader, setup.device);
  feed.start_epoch(0);
  std::optional<data::Batch> batch = feed.next();
  if (batch) training::cast(*batch, setup.precision.parameters);
  return batch;
}

std::string shape_of(const data::Batch& batch) {
  std::string shape;
  for (const auto& [key, images] : batch.tensors)
    shape += fmt::format("{} {} ", key, fmt::join(images.sizes(), "x"));
  return shape;
}

class RealPass {
 public:
  RealPass(TrainConfig config, c10::Device device, data::Batch batch, bool is_validation, int all)
      : config_(std::move(config)),
        batch_(std::move(batch)),
        is_validation_(is_validation),
        all_threads_(all),
        setup_(config_, device) {
    setup_.task->model().train(!is_validation);
    seconds(1);
  }

  /// A validation, which may take long, counts by one run.
  double seconds() { return seconds(is_validation_ ? 1 : 2); }

 private:
  double seconds(int64_t runs) {
    if (config_.performance.num_threads == 0) at::set_num_threads(all_threads_);
    device::apply(config_.performance, setup_.device);
    const auto pass = [&] { is_validation_ ? validate() : train(); };
    return perf::measure(pass, {0, runs}, setup_.device).best_s();
  }
  void train() {
    training::run_pass(*setup_.task, batch_, setup_.precision, setup_.device);
    setup_.optimizer->zero_grad();
  }
  void validate() {
    const c10::InferenceMode inference(config_.trainer.inference_mode);
    const at::NoGradGuard no_grad;
    const training::Autocast autocast(setup_.precision, setup_.device.type());
    setup_.task->validation_step(batch_);
  }

  TrainConfig config_;
  data::Batch batch_;
  bool is_validation_;
  int all_threads_;  // of performance.num_threads=0
  Setup setup_;
};

}  // namespace

FirstBatches::FirstBatches(const TrainConfig& config, c10::Device device, bool with_validation) {
  const Setup setup(config, device);
  training = first_batch(setup, data::Split::train);
  if (!training) throw DataError("the training set has no batch");
  if (with_validation) validation = first_batch(setup, data::Split::valid);
}

std::string FirstBatches::text() const {
  return shape_of(*training) + (validation ? "; " + shape_of(*validation) : "");
}

TimedRun timed_run(const MakePass& make,
                   const TrainConfig& config,
                   const FirstBatches& batches,
                   Aim aim) {
  const bool is_validation = aim == Aim::validation;
  if (is_validation && !batches.validation) return [] { return Figures(); };
  const data::Batch& batch = is_validation ? *batches.validation : *batches.training;
  return [pass = make(config, batch, is_validation),
          is_validation,
          images = batch.tensors.empty() ? 1 : batch.tensors.begin()->second.size(0)] {
    Figures figures;
    figures.times.images = images;
    (is_validation ? figures.validation_s : figures.times.wall_s) = pass();
    return figures;
  };
}

MakePass real_passes(c10::Device device) {
  return [device, all = at::get_num_threads()](
             const TrainConfig& config, const data::Batch& batch, bool is_validation) -> TimedPass {
    const auto pass = std::make_shared<RealPass>(config, device, batch, is_validation, all);
    return [pass] { return pass->seconds(); };
  };
}

}  // namespace cytra::app
