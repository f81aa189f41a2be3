#pragma once
// Loads what a program predicts with, by the sections of its configuration that choose the models
// and how they run.
#include <optional>
#include <string>
#include <vector>

#include "config/option_lister.h"
#include "device/device.h"
#include "inference/predictor/predictor.h"
#include "inference/windows/sliding_window.h"

namespace cytra::inference {

/// The section `performance`, with the engine of the model.
struct ModelPerformanceOptions : device::PerformanceOptions {
  EngineOptions engine;
  void visit(auto& v) {
    PerformanceOptions::visit(v);
    engine.visit_performance(v);
  }
};

/// The section `model`: the checkpoint's model, except for options of its preparation.
struct ModelPreparationOptions {
  EngineOptions engine;
  std::optional<int64_t> spatial_dims;
  std::optional<bool> channels_last;
  ForeignOptions foreign;
  void visit(auto& v) {
    v("spatial_dims", spatial_dims, "null: the checkpoint's; another number is an error", 2, 3);
    v("channels_last", channels_last, "memory format; null: as the checkpoint says");
    foreign.visit(v);
    engine.visit_model(v);
  }
};

/// The sections that programs with a trained model share.
struct ModelConfig {
  CheckpointOptions checkpoint;
  config::Node inference_args;
  TtaOptions tta;
  ModelPerformanceOptions performance;
  ModelPreparationOptions model;
  void visit(auto& v) {
    v("checkpoint", checkpoint, "the trained model");
    v("inference_args",
      inference_args,
      "sliding window; null: as the checkpoint says",
      config::changes<WindowChanges>());
    v("tta", tta, "test-time augmentation: the mean over turned images");
    v("performance", performance, "switches that hold for the whole process");
    v("model", model, "how the checkpoint's model is prepared");
  }
};

/// A trained model, or several whose outputs are averaged, with the device to run on.
struct Subject {
  std::vector<LoadedModel> models;
  c10::Device device;
  std::string precision;  // in which they are run; of detectors "32"
  const LoadedModel& first() const { return models.front(); }
  /// What it makes of an image: an image, the boxes of objects (nn::DetectionModel), or numbers
  /// of the whole (nn::Classifier).
  enum class Result { images, boxes, numbers };
  Result result() const;
  /// The names of its outputs; empty: it has a single one without a name.
  std::vector<std::string> heads() const;
};

/// Loads the models, applies config.performance, and chooses the precision: `precision`, else that
/// of the training where the device has it. Throws: what load_models() throws; ConfigError where
/// the number of dimensions is not the requested one.
Subject load_subject(const ModelConfig& config,
                     c10::Device device,
                     const std::optional<std::string>& precision);

/// Has images, in which objects are of about `diameter` pixels or `diameter_um` micrometres,
/// resampled to the scale of the training's (task.diameter), and results to the voxels of the file;
/// both null: nothing is done. Source: Cellpose's eval(diameter=). Throws: ConfigError for both,
/// and where a model does not know its scale.
void scale_objects(Subject& subject,
                   const std::optional<double>& diameter,
                   const std::optional<double>& diameter_um);

/// The predictor of an output of the model.
struct HeadPredictor {
  std::string head;  // "": the model's only output
  Predictor predictor;
};
/// Makes a predictor for each of the `wanted` heads; empty: for all. `subject` and `config`
/// complete the `options`.
/// Throws: what Predictor throws; ConfigError for a head that the model does not have.
std::vector<HeadPredictor> predictors_of(const Subject& subject,
                                         const ModelConfig& config,
                                         const std::vector<std::string>& wanted,
                                         PredictorOptions options);

}  // namespace cytra::inference
