// The work of `cytra-predict`: an exported model over images, to files, one after the other.
#include <optional>

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "app/run/entry.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/run_lock.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "config/schema.h"
#include "inference/outputs/result.h"
#include "inference/predictor/foreground.h"
#include "inference/predictor/subject.h"
#include "inference/predictor/windowed_model.h"
#include "pipelines/job/inputs.h"
#include "pipelines/job/names.h"
#include "pipelines/job/own_folder.h"
#include "pipelines/job/tally.h"
#include "pipelines/predict/options.h"
#include "pipelines/predict/uncertainty_table.h"

namespace cytra::device {
const std::vector<std::string>& precision_names();  // device/precision.h
}

namespace cytra::app {
namespace {

/// The section `trainer`: what is of training, and of several processes, is not taken.
struct LightTrainerOptions : device::DeviceOptions {
  std::optional<std::string> precision;
  void visit(auto& v) {
    DeviceOptions::visit(v);
    v("precision",
      precision,
      "precision of products; null: that of the training, if the processor has it",
      device::precision_names());
    v("devices", config::Unused{{"1", "AUTO", "auto"}}, "this program is one process");
    v("limit_predict_batches", limit_predict_batches, "1.0: all images are predicted");
  }
  config::Node limit_predict_batches;
};

struct LightPredictConfig : CommonConfig, inference::ModelConfig {
  pipelines::InputOptions data;
  pipelines::PredictOptions predict;
  LightTrainerOptions trainer;
  using ModelConfig::performance;
  void visit(auto& v) {
    ModelConfig::visit(v);
    v("data", data, "what to predict");
    v("predict", predict, "what to write");
    v("trainer", trainer, "where to compute");
    CommonConfig::visit_names(v);
    v("seed", config::Unused{}, "nothing is random here");
    v("test", config::Unused{{"false"}}, "targets are scored by `predict`");
  }
  /// Throws: ConfigError for what `predict` has and this program has not.
  void check() const {
    const config::Node& limit = trainer.limit_predict_batches;
    const std::pair<const char*, bool> options[] = {
        {"data.with_target", data.with_target},
        {"data.batch_size", data.batch_size > 1},
        {"predict.frames", predict.frames != "apart"},
        {"predict.resume", predict.resume},
        {"predict.dry_run", predict.dry_run},
        {"predict.timer", predict.timer},
        {"predict.profiler", predict.profiler.has_value()},
        {"predict.prometheus", predict.prometheus.has_value()},
        {"predict.max_detections", predict.max_detections.has_value()},
        {"performance.quantization", performance.engine.quantization != "none"},
        {"trainer.limit_predict_batches",
         !limit.is_null() && !(limit.kind == config::Kind::real && limit.real == 1)}};
    for (const auto& [option, is_given] : options)
      if (is_given)
        throw ConfigError(std::string(option) +
                          ": `predict` of the whole package has it, this program has not");
  }
};

using pipelines::Tally;

struct Work {
  const LightPredictConfig& config;
  const inference::Predictor& predictor;
  const inference::ResultOptions& result;
  std::function<std::string(int64_t)> class_name;
};

/// Returns the files of the result. `uncertainties` gets a form's mean, where it is one.
inference::ResultFiles predict_image(const Work& work,
                                     data::Sample sample,
                                     const std::string& stem,
                                     std::vector<pipelines::ImageUncertainty>& uncertainties) {
  const c10::InferenceMode inference_mode;
  const inference::WindowedModel& model = work.predictor.windowed();
  sample.folder = stem.substr(0, stem.rfind('/'));
  const auto input = std::make_shared<const inference::ModelInput>(model.transforms.apply(
      sample, model.x_key, work.config.data.spacing_um, inference::by_rows_from()));
  model.check(*input);
  inference::OutputPlace place;
  place.stem = stem;
  place.source = sample.sources.at(pipelines::source_key(work.predictor)).path;
  place.format = work.config.predict.format;
  place.class_name = work.class_name;
  inference::ImageResult::Outputs outputs;
  for (const std::string& name : work.config.predict.outputs())
    outputs.push_back(inference::make_result_output(name, place));
  inference::ImageResult result(work.predictor, work.result, input, std::move(outputs));
  result.run();
  if (inference::Decoder::is_uncertainty(model.form))
    uncertainties.emplace_back(result.mean_uncertainty(), sample.id);
  return result.files();
}

/// Predicts each scene and time point of the inputs.
void predict_all(const Work& work,
                 const std::vector<data::Sample>& inputs,
                 const std::string& folder,
                 Tally& tally) {
  const bool ends_on_error = work.config.data.on_error == "fail";
  const std::string key = pipelines::source_key(work.predictor);
  pipelines::OutputNames names;
  std::vector<pipelines::ImageUncertainty> uncertainties;
  std::vector<std::string> stems;
  for (const data::Sample& input : inputs) stems.push_back(names.next(input.sources.at(key)));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::pair<data::Sample, std::string>> parts;
    tally.attempt(inputs[i].id, Tally::Phase::reading, ends_on_error, [&] {
      const std::vector<data::Sample> scenes =
          pipelines::scenes_of(inputs[i], key, pipelines::parts_to_take(work.predictor));
      for (const data::Sample& scene : scenes) {
        const data::Source& source = scene.sources.at(key);
        const std::string stem = scenes.size() == 1 ? stems[i]
                                 : source.selection.scene >= 0
                                     ? names.scene(stems[i], source.selection.scene)
                                     : names.next(source);  // a plate has places
        const pipelines::Frames frames =
            pipelines::frames_of(scene, key, pipelines::parts_to_take(work.predictor));
        for (std::size_t f = 0; f < frames.size(); ++f) {
          const data::Sample frame = frames[f];
          parts.emplace_back(frame,
                             frames.size() == 1 ? stem : names.frame(stem, frame.sources.at(key)));
        }
      }
    });
    if (parts.size() > 1) tally.images += static_cast<int64_t>(parts.size()) - 1;
    for (const auto& [sample, stem] : parts) {
      tally.attempt(
          sample.id, Tally::Phase::reading, ends_on_error, [&, &sample = sample, &stem = stem] {
            const inference::ResultFiles files =
                predict_image(work, sample, folder + "/" + stem, uncertainties);
            const std::lock_guard lock(tally.mutex);
            for (const auto& [kind, path] : files) tally.results.add_item(kind, path);
            ++tally.done;
          });
    }
  }
  if (!uncertainties.empty()) {
    tally.results.add_item("uncertainty",
                           pipelines::write_uncertainty_table(
                               std::move(uncertainties), folder, work.predictor.windowed().form));
  }
}

int predict_light(cli::Run run, const LightPredictConfig& config) {
  watch_signals();
  const Stopwatch stopwatch;
  const c10::Device device = device::choose_device(config.trainer.accelerator);
  inference::Subject subject = inference::load_subject(config, device, config.trainer.precision);
  const auto task = subject.first().config.get<std::string>("task._target_", "");
  if (task.ends_with("ClassificationTask") || task.ends_with("ScalarRegressionTask"))
    throw ConfigError(subject.first().path +
                      ": it tells of whole images; `predict` of the whole package makes tables");
  inference::scale_objects(subject, config.predict.diameter, config.predict.diameter_um);
  inference::PredictorOptions options;
  options.form = config.predict.save == "auto" ? "" : config.predict.save;
  options.threshold = config.predict.threshold;
  options.temperature = config.predict.temperature_number();
  options.original_grid = inference::keeps_file_grid(subject.first(), config.predict.original_grid);
  options.foreground = inference::foreground_rule(config.predict.skip_empty);
  if (config.predict.max_memory_mb) options.budget = *config.predict.max_memory_mb * 1'000'000;
  const std::vector<inference::HeadPredictor> heads =
      inference::predictors_of(subject, config, config.predict.heads, options);
  Tally tally(run.json);
  std::string folder;
  pipelines::FolderOfResults results_folder(tally);
  std::optional<RunLock> lock;
  for (const inference::HeadPredictor& by : heads) {
    const config::Node& task = by.predictor.model().config.at("task");
    const std::vector<data::Sample> inputs =
        pipelines::list_inputs(config.data,
                               {pipelines::source_key(by.predictor)},
                               tally.leaving_out(),
                               pipelines::wants_of(by.predictor, config.inference_args));
    tally.images += static_cast<int64_t>(inputs.size());
    if (folder.empty()) {
      folder = results_folder.made = open_run_folder(run, false);
      lock.emplace(folder);
    }
    const std::string own = by.head.empty() ? folder : folder + "/" + by.head;
    make_folders(own);
    const inference::ResultOptions result{
        inference::result_steps(by.predictor, config.predict.postprocess),
        config.predict.threshold,
        /*keeps_scored=*/false};
    const auto class_names = task.get<std::vector<std::string>>("class_names", {});
    Work work{config, by.predictor, result, {}};
    if (!class_names.empty()) {
      const int64_t first = task.get<bool>("multilabel", false) ? 0 : 1;  // 0 is the background
      work.class_name = [class_names, first](int64_t number) {
        const auto i = static_cast<std::size_t>(number - first);
        return i < class_names.size() ? class_names[i] : fmt::format("class_{}", number);
      };
    }
    const pipelines::EndOnSignal end_on_signal(tally, [&](int signal) {
      tally.conclude(folder, "predicted in " + format_seconds(stopwatch.seconds()), signal);
    });
    predict_all(work, inputs, own, tally);
  }
  tally.conclude(tally.done > 0 ? folder : "",
                 "predicted in " + format_seconds(stopwatch.seconds()));
  return tally.code;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_predict(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::predict_light);
}

extern "C" int cytra_describe(cytra::cli::DescribeRequest&) {
  throw cytra::ConfigError(
      "--describe: `predict` of the whole package has it, this program has not");
}
