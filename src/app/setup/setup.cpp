#include "app/setup/setup.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/run/launch.h"
#include "base/error.h"
#include "data/datamodules/description.h"
#include "device/backend.h"
#include "device/device.h"
#include "device/fast_precision.h"
#include "nn/weights.h"
#include "tasks/annotation_targets.h"
#include "tasks/loaded_keys.h"

namespace cytra::app {
namespace {

using config::Node;

Setup::Fitted fitted_of(const TrainConfig& config) {
  Setup::Fitted fitted{config.data, config.task};
  const bool has_further_keys = tasks::load_named_keys(fitted.data, fitted.task),
             has_masks = tasks::number_objects(fitted.data, fitted.task);
  fitted.is_changed =
      tasks::fit_to_annotations(fitted.data, fitted.task) || has_further_keys || has_masks;
  return fitted;
}

/// Checks the data module against the data set's own description. Throws: ConfigError where the
/// description names other classes.
std::shared_ptr<data::DataModule> described_by(std::shared_ptr<data::DataModule> data,
                                               const Node& task) {
  const data::DatasetDescription description = data::description_of(*data);
  const Node* classes = task.find("num_classes");
  const auto is_set = [&](const char* key) {
    const Node* node = task.find(key);
    return node != nullptr && !node->is_null() &&
           !(node->kind == config::Kind::list && node->list.empty());
  };
  if (description.labels.size() < 3 || classes == nullptr ||
      classes->kind != config::Kind::integer || task.get<bool>("multilabel", false) ||
      is_set("target_values") || is_set("target_threshold") || is_set("colours"))
    return data;
  const int64_t named = description.labels.rbegin()->first + 1;
  if (classes->integer == named) return data;
  std::vector<std::string> labels;
  for (const auto& [value, name] : description.labels)
    labels.push_back(fmt::format("{} ({})", value, name));
  throw ConfigError(
      "num_classes={} ({}), but {} names the labels {}, expected num_classes={}; num_classes=1 "
      "task.target_threshold=0 learns them as one mask",
      classes->integer,
      classes->origin.text(),
      description.place,
      fmt::join(labels, ", "),
      named);
}

/// Sets random numbers and threads, before a component is made. Returns the seed.
uint64_t prepare_process(const TrainConfig& config,
                         c10::Device device,
                         const training::ProcessPlace& place) {
  const auto seed = static_cast<uint64_t>(config.seed.value_or(0));
  at::manual_seed(seed);
  device::apply(config.performance, device);
  if (config.performance.num_threads == 0 && place.size > 1) at::set_num_threads(threads_of(place));
  return seed;
}

}  // namespace

c10::Device choose_device(const TrainConfig& config) {
  device::prepare(config.performance, config.trainer.deterministic_mode);
  const c10::Device device = device::choose_device(config.trainer.accelerator);
  training::ProcessPlace first;
  config.trainer.devices.expect_there(device::backend_of(device).count());
  first.gpus = config.trainer.devices.chosen;
  return device_of(first, device);
}

Setup::Setup(const TrainConfig& config,
             c10::Device device,
             const training::ProcessPlace& place,
             const std::string& weights)
    : seed(prepare_process(config, device, place)),
      device(device),
      place(place),
      precision(training::precision_of(config.trainer.precision)),
      fitted(fitted_of(config)),
      data(described_by(make<data::DataModule>(fitted.data), fitted.task)),
      task(make<training::Task>(fitted.task)),
      optimizer(make<training::Optimizer>(config.optimizer)),
      scheduler(make<training::Scheduler>(config.scheduler)) {
  if (place.rank == 0) device::warn_of_slow_precision(config.trainer.precision, device);
  nn::Model& model = task->model();
  if (precision.parameters != at::kFloat) nn::cast(model, precision.parameters);
  nn::place(model, device, device::uses_tensor_cores(config.trainer.precision, device));
  if (!weights.empty()) {
    const std::optional<bool>& strict = config.checkpoint.strict;
    nn::load_weights(weights,
                     model,
                     !strict   ? nn::Fit::most
                     : *strict ? nn::Fit::all
                               : nn::Fit::some);
  }
  for (const auto& callback : make_callbacks(config, place.rank == 0)) callback->prepare(model);
  optimizer->attach(model.named_parameters().pairs());
}

Callbacks make_callbacks(const TrainConfig& config, bool is_first_process) {
  Callbacks callbacks;
  for (const auto& [name, node] : config.callbacks.map) {
    if (!node.is_map()) continue;  // null: switched off
    auto callback = make<training::Callback>(node);
    callback->name = name;
    if (callback->takes_part(config.trainer, is_first_process))
      callbacks.push_back(std::move(callback));
  }
  return callbacks;
}

Loggers make_loggers(const TrainConfig& config, bool is_first_process) {
  Loggers loggers;
  if (!is_first_process || config.trainer.fast_dev_run > 0) return loggers;
  for (const auto& [name, node] : config.logger.map) {
    if (node.is_map()) loggers.push_back(make<training::Logger>(node));
  }
  return loggers;
}

}  // namespace cytra::app
