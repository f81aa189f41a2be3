#include "inference/predictor/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "device/fast_precision.h"
#include "inference/models/trained_head.h"
#include "nn/classifier.h"
#include "nn/detection_model.h"

namespace cytra::inference {
namespace {

EngineOptions engine_options(const ModelConfig& config) {
  EngineOptions engine = config.performance.engine;
  engine.compile_model = config.model.engine.compile_model;
  engine.compile_mode = config.model.engine.compile_mode;
  return engine;
}

}  // namespace

Subject::Result Subject::result() const {
  const nn::Model* const network = first().network.get();
  if (dynamic_cast<const nn::DetectionModel*>(network) != nullptr) return Result::boxes;
  return dynamic_cast<const nn::Classifier*>(network) != nullptr ? Result::numbers : Result::images;
}

std::vector<std::string> Subject::heads() const {
  return heads_of(first().config.at("task"));
}

Subject load_subject(const ModelConfig& config,
                     c10::Device device,
                     const std::optional<std::string>& precision) {
  const ModelPreparationOptions& asked = config.model;
  CheckpointOptions checkpoint = config.checkpoint;
  checkpoint.foreign = asked.foreign;
  Subject subject{load_models(checkpoint), device, ""};
  for (const LoadedModel& model : subject.models) {
    if (asked.spatial_dims && *asked.spatial_dims != model.spatial_dims) {
      throw ConfigError("model.spatial_dims: {}, but the model in {} has {}; leave it out",
                        *asked.spatial_dims,
                        model.path,
                        model.spatial_dims);
    }
    if (asked.channels_last && model.network)
      model.network->settings.channels_last = asked.channels_last;
  }
  const auto trained = subject.first().config.get<std::string>("trainer.precision", "32");
  const bool finds_boxes = subject.result() == Subject::Result::boxes;
  subject.precision = finds_boxes ? "32" : device::precision_to_run(precision, trained, device);
  engine_options(config).say_what_is_idle(device, finds_boxes);
  device::apply(config.performance, device);  // TF32 affects the layout of the model's channels
  return subject;
}

void scale_objects(Subject& subject,
                   const std::optional<double>& diameter,
                   const std::optional<double>& diameter_um) {
  if (!diameter && !diameter_um) return;
  const char* const key = diameter ? "predict.diameter" : "predict.diameter_um";
  if (diameter && diameter_um)
    throw ConfigError("predict.diameter_um: expected this or predict.diameter, got both");
  for (LoadedModel& model : subject.models) {
    config::Node& task = *model.config.find("task");
    const config::Node* const own = task.find("diameter");
    if (own == nullptr || own->is_null())
      throw ConfigError(
          "{}: {} does not say the diameter of the objects it was trained on (task.diameter); "
          "leave it out",
          key,
          model.path);
    const auto trained = own->as<double>();
    const double zoom = diameter ? trained / *diameter : 1;
    const double spacing_um = diameter ? 0 : *diameter_um / trained;
    log::info("{}={}: images are resampled to {:.3g} {}",
              key,
              diameter ? *diameter : *diameter_um,
              diameter ? zoom : spacing_um,
              diameter ? "times their size" : "um from voxel to voxel");
    const config::Node step = config::parse_yaml(
        fmt::format(
            "{{_target_: Zoomd, keys: [{}, {}], allow_missing_keys: true, zoom: [{}], "
            "spacing_um: {}, mode: [{}, nearest], keep_size: false}}",
            task.get<std::string>("x_key"),
            task.get<std::string>("y_key"),
            fmt::join(std::vector<double>(static_cast<std::size_t>(model.spatial_dims), zoom),
                      ", "),
            spacing_um,
            zoom < 1 ? "area" : "bilinear"),
        key);
    for (const char* split : {"valid", "predict"}) {
      config::Node* const list = model.config.find("data.transforms." + std::string(split));
      if (list != nullptr && !list->is_null()) list->list.push_back(step);
    }
    task.set("original_grid", config::Node::make_boolean(true));
  }
}

std::vector<HeadPredictor> predictors_of(const Subject& subject,
                                         const ModelConfig& config,
                                         const std::vector<std::string>& wanted,
                                         PredictorOptions options) {
  options.accelerator = subject.device.is_cpu() ? "cpu" : "gpu";
  options.inference_args = config.inference_args;
  options.engine = engine_options(config);
  options.engine.precision = subject.precision;
  options.tta = config.tta;
  std::vector<HeadPredictor> predictors;
  for (const std::string& head : wanted.empty() ? subject.heads() : wanted) {
    std::vector<LoadedModel> parts;
    for (const LoadedModel& model : subject.models) parts.push_back(head_of(model, head));
    predictors.push_back({head, {std::move(parts), options}});
  }
  if (predictors.empty()) predictors.push_back({"", {subject.models, options}});
  return predictors;
}

}  // namespace cytra::inference
