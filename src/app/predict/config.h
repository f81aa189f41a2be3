#pragma once
// All that `predict` takes.
#include <optional>
#include <string>
#include <string_view>

#include "app/run/entry.h"
#include "inference/predictor.h"
#include "pipelines/job/inputs.h"
#include "pipelines/predict/options.h"
#include "training/trainer_options.h"

namespace cytra::app {

/// What TrainerOptions visits, as keys that `predict` takes and does not read: the group `trainer`
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

/// Where to compute, and how much.
struct PredictTrainerOptions : perf::DeviceOptions {
  config::Node limit_predict_batches;
  training::Amount limit;
  std::optional<std::string> precision;
  int64_t devices = 0;  // auto
  template <class V>
  void visit(V& v) {
    DeviceOptions::visit(v);
    v("precision",
      precision,
      "of products; weights stay float32, so true and mixed are the same here; null: the "
      "training's "
      "where the device has it",
      perf::precision_names());
    v("devices",
      devices,
      "processes that share the images: AUTO takes all GPUs, or one CPU, or as many as torchrun or "
      "Slurm has started",
      config::Keyword{1, 4096, "AUTO", 0});
    v("limit_predict_batches",
      limit_predict_batches,
      "of the images: the first 10, or 0.1 of them");
    KeysOfTraining<V> others(v);
    training::TrainerOptions().visit(others);
  }
  void check() {
    limit = training::amount_of(limit_predict_batches, limit);
    if (limit.is_none())
      config::throw_bad_value(limit_predict_batches, "one image at least; 1.0: all");
  }
};

/// `performance`, with what runs the model.
struct PredictPerformanceOptions : perf::PerformanceOptions {
  inference::EngineOptions engine;
  template <class V>
  void visit(V& v) {
    PerformanceOptions::visit(v);
    engine.visit_performance(v);
  }
};

/// `model`: the checkpoint's, but for how it is prepared.
struct PredictModelOptions {
  inference::EngineOptions engine;
  std::optional<int64_t> spatial_dims;
  std::optional<bool> channels_last;
  template <class V>
  void visit(V& v) {
    v("spatial_dims", spatial_dims, "null: the checkpoint's; another number is an error", 2, 3);
    v("channels_last", channels_last, "memory format; null: as the checkpoint says");
    engine.visit_model(v);
  }
};

/// What the sections that programs share say of how a model is run.
template <class Config>
inference::PredictorOptions predictor_options(const Config& config) {
  inference::PredictorOptions options;
  options.accelerator = config.trainer.accelerator;
  options.inference_args = config.inference_args;
  options.engine = config.performance.engine;
  options.engine.precision = config.trainer.precision.value_or("32");
  options.engine.compile_model = config.model.engine.compile_model;
  options.engine.compile_mode = config.model.engine.compile_mode;
  options.tta = config.tta;
  return options;
}

struct PredictConfig : CommonConfig {
  inference::CheckpointOptions checkpoint;
  pipelines::InputOptions data;
  pipelines::PredictOptions predict;
  config::Node inference_args;
  inference::TtaOptions tta;
  PredictTrainerOptions trainer;
  PredictPerformanceOptions performance;
  PredictModelOptions model;
  template <class V>
  void visit(V& v) {
    v("checkpoint", checkpoint, "the trained model");
    v("data", data, "what to predict");
    v("predict", predict, "what to write");
    v("inference_args",
      inference_args,
      "sliding window; null: as the checkpoint says",
      config::changes<inference::WindowChanges>());
    v("tta", tta, "test-time augmentation: the mean over turned images");
    v("trainer", trainer, "where to compute");
    v("performance", performance, "switches that hold for the whole process");
    v("model", model, "how the checkpoint's model is prepared");
    CommonConfig::visit_names(v);
    v("seed", config::Unused{}, "nothing is random here");
    v("test", config::Unused{{"false"}}, "use data.with_target=true");
  }
  inference::PredictorOptions predictor() const {
    inference::PredictorOptions options = predictor_options(*this);
    options.form = predict.save == "auto" ? "" : predict.save;
    options.threshold = predict.threshold;
    options.with_target = data.scores();
    options.tracks_places = predict.original_grid;
    return options;
  }
};

}  // namespace cytra::app
