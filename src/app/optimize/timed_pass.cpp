#include "app/optimize/timed_pass.h"

#include <algorithm>

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

void train(const Setup& setup, const data::Batch& batch) {
  training::run_pass(*setup.task, batch, setup.precision, setup.device);
  setup.optimizer->zero_grad();
}

void validate(const Setup& setup, const data::Batch& batch, bool inference_mode) {
  const c10::InferenceMode inference(inference_mode);
  const at::NoGradGuard no_grad;
  const training::Autocast autocast(setup.precision, setup.device.type());
  setup.task->validation_step(batch);
}

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
    const auto setup = std::make_shared<Setup>(config, device);
    setup->task->model().train(!is_validation);
    const auto seconds = [=,
                          performance = config.performance,
                          inference_mode = config.trainer.inference_mode](int64_t runs) {
      if (performance.num_threads == 0) at::set_num_threads(all);
      device::apply(performance, device);
      const auto pass = [&] {
        is_validation ? validate(*setup, batch, inference_mode) : train(*setup, batch);
      };
      return perf::measure(pass, {0, runs}, device).best_s();
    };
    seconds(1);
    // A validation, which may take long, counts by one run.
    return [=] { return seconds(is_validation ? 1 : 2); };
  };
}

}  // namespace cytra::app
