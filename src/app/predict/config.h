#pragma once
// All that `predict` takes.
#include <optional>
#include <string>
#include <string_view>

#include "app/run/entry.h"
#include "inference/predictor/subject.h"
#include "pipelines/job/inputs.h"
#include "pipelines/predict/options.h"
#include "training/trainer_options.h"

namespace cytra::app {

/// Visits the keys of TrainerOptions that `predict` accepts and does not read: the group `trainer`
/// is chosen here as in `train`.
template <class V>
class KeysOfTraining {
 public:
  explicit KeysOfTraining(V& v) : v_(v) {}
  template <class... Rest>
  void operator()(const char* key, Rest&&...) {
    take(key);
  }
  template <class T>
  void operator()(const char* key, T&, const char*, const std::vector<std::string>&) {
    take(key);
  }

 private:
  void take(const char* key) {
    const std::string_view name = key;
    if (name != "accelerator" && name != "precision" && name != "devices" &&
        name != "limit_predict_batches")
      v_(key, config::Unused{}, "of training");
  }
  V& v_;
};

/// The device, and how much is computed.
struct PredictTrainerOptions : device::DeviceOptions {
  config::Node limit_predict_batches, given_devices;
  training::Amount limit;
  std::optional<std::string> precision;
  training::Devices devices{0, {}};  // auto
  void visit(auto& v) {
    DeviceOptions::visit(v);
    v("precision",
      precision,
      "precision of products; weights stay float32, so true and mixed are the same here; null: "
      "that of the training, if the device has it",
      device::precision_names());
    v("devices",
      given_devices,
      "processes that share the images: AUTO takes all GPUs, or one CPU, or as many as torchrun or "
      "Slurm has started; [0, 2]: these GPUs");
    v("limit_predict_batches",
      limit_predict_batches,
      "how many images: 10 (the first ten) or 0.1 (a tenth of them)");
    KeysOfTraining others(v);
    training::TrainerOptions().visit(others);
  }
  void check() {
    if (!given_devices.is_null()) devices = training::Devices::of(given_devices);
    limit = training::amount_of(limit_predict_batches, limit);
    if (limit.is_none())
      config::throw_bad_value(limit_predict_batches, "one image at least; 1.0: all");
  }
};

/// The device of a program that predicts in one process.
struct OneProcessOptions : device::DeviceOptions {
  std::optional<std::string> precision;
  void visit(auto& v) {
    DeviceOptions::visit(v);
    v("precision",
      precision,
      "precision of products; weights stay float32; null: that of the training, if the device has "
      "it",
      device::precision_names());
    v("devices", config::Unused{}, "the program runs in one process");
    v("limit_predict_batches", config::Unused{}, "of predict");
    KeysOfTraining others(v);
    training::TrainerOptions().visit(others);
  }
};

struct PredictConfig : CommonConfig, inference::ModelConfig {
  pipelines::InputOptions data;
  pipelines::PredictOptions predict;
  PredictTrainerOptions trainer;
  using ModelConfig::performance;
  void visit(auto& v) {
    ModelConfig::visit(v);
    v("data", data, "what to predict");
    v("predict", predict, "what to write");
    v("trainer", trainer, "where to compute");
    CommonConfig::visit_names(v);
    v("seed", config::Unused{}, "nothing is random here");
    v("test", config::Unused{{"false"}}, "use data.with_target=true");
  }
};

}  // namespace cytra::app
