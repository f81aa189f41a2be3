#include "app/predict/image_options.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "inference/decoders/decoder.h"
#include "inference/predictor/windowed_model.h"

namespace cytra::app {

void expect_no_image_options(const PredictConfig& config, const std::string& why) {
  const pipelines::PredictOptions& predict = config.predict;
  const inference::EngineOptions& engine = config.performance.engine;
  const std::pair<const char*, bool> options[] = {
      {"predict.save", predict.save != "auto"},
      {"predict.format", predict.format != "auto"},
      {"predict.frames", predict.frames != "apart"},
      {"predict.heads", !predict.heads.empty()},
      {"predict.postprocess", !predict.postprocess.list.empty()},
      {"predict.original_grid", predict.original_grid.value_or(false)},
      {"predict.measurements", predict.measurements},
      {"predict.contours", predict.contours != "none"},
      {"predict.dry_run", predict.dry_run},
      {"predict.max_memory_mb", predict.max_memory_mb.has_value()},
      {"predict.profiler", predict.profiler.has_value()},
      {"predict.timer", predict.timer},
      {"predict.prometheus", predict.prometheus.has_value()},
      {"tta", !config.tta.is_plain() || config.tta.dropout_samples > 0},
      {"trainer.devices", config.trainer.devices.count > 1},
      {"performance.backend", engine.backend != "auto" && engine.backend != "eager"},
      {"performance.quantization", engine.quantization != "none"}};
  for (const auto& [option, is_given] : options)
    if (is_given) throw ConfigError(std::string(option) + ": " + why);
}

void expect_scored_form(const inference::Predictor& predictor) {
  const std::string usual = predictor.windowed().decoder->forms().front();
  const bool is_scored =
      predictor.windowed().decoder->steps(usual).empty() || !predictor.windowed().steps.empty();
  if (is_scored && !inference::Decoder::is_uncertainty(predictor.windowed().form)) return;
  throw ConfigError(
      fmt::format("data.with_target: expected predict.save={}, which is scored, got {}",
                  usual,
                  predictor.windowed().form));
}

}  // namespace cytra::app
