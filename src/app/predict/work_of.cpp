#include "app/predict/work_of.h"

#include "base/error.h"
#include "device/precision.h"
#include "inference/predictor/foreground.h"
#include "pipelines/predict/box_work.h"
#include "pipelines/predict/image_work.h"
#include "pipelines/predict/number_work.h"
#include "tasks/whole_images/image_target.h"

namespace cytra::app {
namespace {

using Result = inference::Subject::Result;

std::string reason(Result result) {
  switch (result) {
    case Result::boxes:
      return "this option is not for a detector, which gives boxes";
    case Result::numbers:
      return "this model tells of whole images, and gives a table, which has no use for it";
    case Result::images:
      break;
  }
  return "it is for detectors; this model gives masks or values";
}

/// Throws: ConfigError for an option that is given and that these results have no use for.
void expect_used(const PredictConfig& config, Result result) {
  const pipelines::PredictOptions& predict = config.predict;
  const inference::EngineOptions& engine = config.performance.engine;
  const bool images = result == Result::images, boxes = result == Result::boxes;
  struct Row {
    const char* option;
    bool is_given, is_used;
  };
  const Row rows[] = {
      {"predict.max_detections", predict.max_detections.has_value(), boxes},
      {"predict.save", predict.save != "auto", images},
      {"predict.format", predict.format != "auto", images},
      {"predict.frames", predict.frames != "apart", images},
      {"predict.heads", !predict.heads.empty(), images},
      {"predict.postprocess", !predict.postprocess.list.empty(), images},
      {"predict.diameter", predict.diameter.has_value(), images},
      {"predict.diameter_um", predict.diameter_um.has_value(), images},
      {"predict.original_grid", predict.original_grid.value_or(false), images || boxes},
      {"predict.measurements", predict.measurements, images},
      {"predict.contours", predict.contours != "none", images},
      {"predict.skip_empty", !predict.skip_empty.is_null(), images},
      {"predict.max_memory_mb", predict.max_memory_mb.has_value(), images},
      {"predict.temperature", predict.temperature_number() != 1, !boxes},
      {"data.with_target", config.data.scores(), !boxes},
      {"checkpoint.ckpt_path with several models", config.checkpoint.ckpt_path.size() > 1, !boxes},
      {"tta", !config.tta.is_plain() || config.tta.dropout_samples > 0, images},
      {"performance.backend", engine.backend != "auto" && engine.backend != "eager", images},
      {"performance.quantization", engine.quantization != "none", images}};
  for (const auto& [option, is_given, is_used] : rows) {
    if (is_given && !is_used) throw ConfigError(option + (": " + reason(result)));
  }
  for (const auto& [key, value] : config.inference_args.map) {
    if (images || value.is_null()) continue;
    if (boxes && key != "roi_size" && key != "overlap" && key != "sw_batch_size")
      throw ConfigError(value.where() + ": " + reason(result));
    if (!boxes && !inference::WindowChanges::is_auto(value))
      throw ConfigError(value.where() + ": this model takes whole images, no windows");
  }
  const std::string precision = config.trainer.precision.value_or("32");
  if (result == Result::numbers && device::precision_of(precision).compute != at::kFloat) {
    throw ConfigError("trainer.precision={}: whole images are predicted in float32; expected 32",
                      precision);
  }
}

}  // namespace

std::vector<HeadWork> works_of(const inference::Subject& subject, const PredictConfig& config) {
  Result result = subject.result();
  if (result == Result::images && tasks::is_of_whole_images(subject.first().config.at("task")))
    result = Result::numbers;  // of an exported network
  expect_used(config, result);
  std::vector<HeadWork> works;
  if (result == Result::boxes) {
    works.push_back({"",
                     std::make_unique<pipelines::BoxWork>(
                         subject, config.data, config.predict, config.inference_args)});
    return works;
  }
  if (result == Result::numbers) {
    works.push_back(
        {"", std::make_unique<pipelines::NumberWork>(subject, config.data, config.predict)});
    return works;
  }
  inference::PredictorOptions options;
  options.form = config.predict.save == "auto" ? "" : config.predict.save;
  options.threshold = config.predict.threshold;
  options.temperature = config.predict.temperature_number();
  options.with_target = config.data.scores();
  options.original_grid = inference::keeps_file_grid(subject.first(), config.predict.original_grid);
  options.foreground = inference::foreground_rule(config.predict.skip_empty);
  if (config.predict.max_memory_mb) options.budget = *config.predict.max_memory_mb * 1'000'000;
  for (const inference::HeadPredictor& by :
       inference::predictors_of(subject, config, config.predict.heads, options)) {
    works.push_back(
        {by.head,
         std::make_unique<pipelines::ImageWork>(
             by.predictor, by.head, config.data, config.predict, config.inference_args)});
  }
  return works;
}

}  // namespace cytra::app
