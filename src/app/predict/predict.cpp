// The work of `predict`: a trained model over images, to files.
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/predict/boxes.h"
#include "app/predict/image_options.h"
#include "app/predict/whole_images.h"
#include "app/run/launch.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/run_lock.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "base/timers.h"
#include "config/run_config.h"
#include "config/text_of.h"
#include "device/device.h"
#include "inference/decoders/decoder.h"
#include "inference/predictor/predictor.h"
#include "inference/predictor/windowed_model.h"
#include "ops/windows/sums.h"
#include "pipelines/job/own_folder.h"
#include "pipelines/job/stamp.h"
#include "pipelines/predict/pipeline.h"
#include "pipelines/predict/uncertainty_table.h"

namespace cytra::app {
namespace {
const bool predict_is_added = add_program<PredictConfig>("predict");

using inference::HeadPredictor;
using pipelines::DoneRecord;
using pipelines::PredictStages;
using pipelines::Tally;

/// All settings that results depend on, except the images.
std::string settings_of(const PredictConfig& config,
                        const std::string& precision,
                        const inference::Predictor& predictor) {
  const config::Node& trained = predictor.model().config;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}",
                     predictor.model().fingerprint,
                     config::to_json(trained.at("data.transforms")),
                     config::to_json(trained.at("task")),
                     predictor.windowed().form,
                     config::to_json(config.inference_args),
                     precision,
                     config.data.axes.value_or(""),
                     fmt::join(config.data.spacing_um, ","),
                     config::text_of(config.predict,
                                     {"save",
                                      "heads",
                                      "frames",
                                      "resume",
                                      "max_detections",
                                      "max_memory_mb",
                                      "prometheus",
                                      "timer",
                                      "profiler",
                                      "dry_run"}),
                     config::text_of(config.tta),
                     config::text_of(config.model, {"spatial_dims"}),
                     config::text_of(config.performance, pipelines::kOptionsOfSpeed));
}

/// The inputs that this run is to predict.
std::vector<data::Sample> inputs_of(const PredictConfig& config,
                                    const inference::Predictor& predictor,
                                    Tally& tally) {
  std::vector<std::string> keys{pipelines::source_key(predictor)};
  if (config.data.scores()) {
    keys.push_back(predictor.windowed().y_key);
    const config::Node* mask = predictor.model().config.find("task.mask_key");
    if (mask != nullptr && !mask->is_null()) keys.push_back(mask->as<std::string>());
  }
  std::vector<data::Sample> inputs =
      pipelines::list_inputs(config.data,
                             keys,
                             tally.leaving_out(),
                             pipelines::wants_of(predictor, config.inference_args));
  if (!inputs.empty()) {
    inputs.resize(static_cast<std::size_t>(config.trainer.limit.of(
        static_cast<int64_t>(inputs.size()), "trainer.limit_predict_batches")));
  }
  tally.images += static_cast<int64_t>(inputs.size());
  return inputs;
}

/// The seconds of a pass over windows of this shape.
double seconds_of(const inference::Predictor& predictor, const std::vector<int64_t>& shape) {
  const at::Tensor noise = at::rand(shape).to(predictor.windowed().device);
  predictor.windowed().forward(noise);  // the first pass makes the engine
  device::synchronize(predictor.windowed().device);
  const Stopwatch stopwatch;
  predictor.windowed().forward(noise);
  device::synchronize(predictor.windowed().device);
  return stopwatch.seconds();
}

/// Reports for predict.dry_run what would be done, and the time that it takes by a first
/// measurement.
int tell_plan(const inference::Predictor& predictor,
              const std::vector<data::Sample>& inputs,
              Tally& tally) {
  std::map<std::vector<int64_t>, double> seconds;  // seconds of a pass, by the windows' shape
  const c10::InferenceMode inference_mode;
  int64_t windows = 0;
  double bytes = 0, all_seconds = 0;
  for (const data::Sample& input : inputs) {
    try {
      const pipelines::Frames frames = pipelines::frames_of(input, predictor);
      const std::vector<int64_t> shape =
          predictor.windowed().transforms.shape_of(frames[0], predictor.windowed().x_key);
      const std::vector<int64_t> size{shape.begin() + 1, shape.end()};
      const inference::SlidingWindowOptions chosen = predictor.windowed().windows(input.id, size);
      int64_t loading = 8;
      for (const int64_t side : shape) loading *= side;
      const auto plan =
          predictor.windowed().plan(size, chosen, loading > inference::by_rows_from());
      const auto count = static_cast<int64_t>(frames.size());
      log::info(
          "{}: {}{}", input.id, count == 1 ? "" : fmt::format("{} images of ", count), plan.text);
      std::vector<int64_t> pass{std::min(chosen.sw_batch_size, plan.windows), shape[0]};
      for (std::size_t d = 0; d < size.size(); ++d)
        pass.push_back(chosen.roi_size[d] > 0 ? chosen.roi_size[d] : size[d]);
      double& once = seconds[pass];
      if (once == 0) once = seconds_of(predictor, pass);
      windows += count * plan.windows;
      bytes = std::max(bytes, plan.bytes);
      all_seconds +=
          once * static_cast<double>(count * plan.windows) / static_cast<double>(pass[0]);
    } catch (const Error& error) {
      tally.leave_out(input.id, error);
    }
  }
  tally.results.add("windows", config::Node::make_integer(windows));
  tally.results.add("memory_mb", std::round(bytes / 1e6));
  tally.results.add("seconds", std::round(all_seconds * 10) / 10);
  tally.results.print();
  log::info("{} images by {} windows: about {} and {} of memory on {}, {}",
            inputs.size(),
            windows,
            format_seconds(all_seconds),
            format_bytes(bytes),
            device::describe(predictor.windowed().device),
            predictor.engine());
  return tally.code;
}

/// Agrees on the run's folder with the other processes. Returns an exit code where a signal, or an
/// error of another process, has ended the run, else 0.
int join_processes(OwnProcess& self,
                   cli::Run& run,
                   const pipelines::PredictOptions& options,
                   CommonPaths& common) {
  training::Processes& processes = self.processes;
  if (processes.is_first()) {
    common.folder = open_run_folder(run, options.resume);
  } else {
    const training::Processes::Received received = processes.receive();
    if (received.code != 0) return received.code;
    common = take_common(received.text, run);
    self.own_log.open(
        fmt::format("{}/{}.rank{}.log", common.folder, run.program, processes.place().rank));
  }
  processes.send(text_of(common, run));
  if (processes.is_alone()) return 0;
  start_is_over();  // from here on all processes end together
  if (starts_others(processes.place())) self.children.start(processes.place());
  return processes.join(c10::kCPU, common.folder + "/" + run.program);
}

/// Gathers the scores, error codes and counts of all processes.
void gather(training::Processes& processes,
            const std::optional<tasks::ResultScores>& scores,
            Tally& tally) {
  if (processes.is_alone()) return;
  const training::ProcessPlace& place = processes.place();
  const at::Tensor codes = at::zeros({place.size}, at::kDouble);
  codes[place.rank] = tally.code;
  const at::Tensor resumed =
      at::tensor({static_cast<double>(tally.resumed)}, at::TensorOptions(at::kDouble));
  std::vector<at::Tensor> sums{codes, resumed};
  if (scores) {
    for (const at::Tensor& own : scores->sums()) sums.push_back(own);
  }
  processes.sum(sums);
  for (int64_t rank = 0; rank < place.size && tally.code == 0; ++rank)
    tally.code = static_cast<int>(codes[rank].item<double>());
  // This is counted once, as there may be further heads.
  tally.resumed = processes.is_first() ? static_cast<int64_t>(resumed.item<double>()) : 0;
}

/// Adds what the other processes have written, so that the first process can report it.
void add_others(DoneRecord& record, Tally& tally) {
  const DoneRecord::Others others = record.of_others();
  for (const auto& [kind, path] : others.files) tally.results.add_item(kind, path);
  for (const auto& [image, code] : others.failed) tally.results.add_item("failed", image);
  tally.done += others.done;
}

/// Adds the scores, and names the one that compares this run with others: the one that the
/// training watched.
void add_scores(const std::map<std::string, double>& scores,
                const config::Node& training,
                const std::string& head,
                cli::Results& results) {
  const std::string end = head.empty() ? "" : "/" + head;
  for (const auto& [name, value] : scores) results.add(name + end, value);
  const auto watched = training.get<std::string>("callbacks.model_checkpoint.monitor", "");
  const std::string name = watched.substr(watched.find('/') + 1);  // "val/dice"
  if (scores.count(name) == 0) return;
  results.add("monitor", name + end);
  results.add("mode", training.get<std::string>("callbacks.model_checkpoint.mode", "min"));
}

/// Predicts all inputs with one head, into `folder`. `conclude` is called with the signal when one
/// ends the program.
void predict_head(OwnProcess& self,
                  const PredictConfig& config,
                  const std::string& precision,
                  const HeadPredictor& by,
                  const std::vector<data::Sample>& inputs,
                  const std::string& folder,
                  Tally& tally,
                  PredictStages& stages,
                  training::Profile* profile,
                  const std::function<void(int signal)>& conclude) {
  const inference::LoadedModel& model = by.predictor.model();
  std::optional<tasks::ResultScores> scores;
  if (config.data.scores()) expect_scored_form(by.predictor);
  if (config.data.scores()) scores.emplace(model.config.at("task"), model.out_channels);
  DoneRecord record(folder, "predictions", self.processes.place().rank);
  pipelines::PredictPipeline pipeline({config.data,
                                       config.predict,
                                       settings_of(config, precision, by.predictor),
                                       folder,
                                       tally,
                                       self.processes,
                                       stages,
                                       profile},
                                      by.predictor,
                                      record,
                                      scores ? &*scores : nullptr);
  const auto log_progress = [&] {
    if (!self.processes.is_first()) return;
    if (!self.processes.is_alone()) add_others(record, tally);
    if (!scores) return;
    add_scores(scores->compute(), model.config, by.head, tally.results);
    const std::string missing = scores->what_is_missing();
    if (!missing.empty()) log::warn("{}", missing);
  };
  {
    const pipelines::EndOnSignal end_on_signal(tally, [&](int signal) {
      log_progress();
      conclude(signal);
    });
    Progress progress("predicting", static_cast<int64_t>(inputs.size()));
    pipeline.run(inputs, progress);
  }
  gather(self.processes, scores, tally);
  log_progress();
  const std::string& form = by.predictor.windowed().form;
  if (self.processes.is_first() && inference::Decoder::is_uncertainty(form) && tally.done > 0)
    tally.results.add_item("uncertainty",
                           pipelines::write_uncertainty_table(
                               pipelines::uncertainties_of(record, form), folder, form));
}

/// Writes the figures. It is called at the beginning, too, to find out whether the file can be
/// written.
void write_figures(const PredictStages& stages, const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) make_folders(parent.string());
  stages.report.write_prometheus(path);
}

int predict_with(OwnProcess& self,
                 cli::Run run,
                 const PredictConfig& config,
                 const std::string& precision,
                 const std::vector<HeadPredictor>& heads) {
  const Stopwatch stopwatch;
  Tally tally(run.json);
  const inference::Predictor& predictor = heads.front().predictor;
  std::vector<data::Sample> inputs = inputs_of(config, predictor, tally);
  if (config.predict.dry_run) {
    if (heads.size() > 1) log::info("of each of {} heads:", heads.size());
    return tell_plan(predictor, inputs, tally);
  }
  CommonPaths common;
  pipelines::FolderOfResults results_folder(tally);
  if (const int code = join_processes(self, run, config.predict, common); code != 0) return code;
  const std::string& folder = common.folder;
  const bool is_first = self.processes.is_first();
  std::optional<RunLock> lock;
  if (is_first) {
    if (!config.predict.resume) results_folder.made = folder;
    lock.emplace(folder);
  }
  if (config.predict.timer) timers::enable();
  log::info("{}: {} images on {}",
            predictor.model().path,
            tally.images,
            device::describe(predictor.windowed().device));
  PredictStages stages;
  if (is_first && config.predict.prometheus) write_figures(stages, *config.predict.prometheus);

  const auto conclude = [&](int signal) {
    if (!is_first) return;
    tally.conclude(tally.done > 0 || signal != 0 ? folder : "",
                   "predicted in " + format_seconds(stopwatch.seconds()),
                   signal);
  };
  const auto profile = pipelines::make_profile(config.predict.profiler,
                                               predictor.windowed().device,
                                               folder,
                                               self.processes.place().rank,
                                               predictor.model().network.get());
  for (const HeadPredictor& by : heads) {
    if (&by != &heads.front()) inputs = inputs_of(config, by.predictor, tally);  // other targets
    const std::string own = by.head.empty() ? folder : folder + "/" + by.head;
    make_folders(own);
    predict_head(self, config, precision, by, inputs, own, tally, stages, profile.get(), conclude);
  }
  if (profile) profile->finish();
  self.processes.finish();
  stages.report.finish();
  if (const std::string text = stages.report.bottleneck(); is_first && !text.empty())
    log::info("{}", text);
  if (config.predict.timer)
    log::info("times of the stages:\n{}\n{}", stages.report.table(), timers::table());
  if (is_first && config.predict.prometheus) {
    stages.report.count("images_failed", "Images that were left out.", tally.images - tally.done);
    write_figures(stages, *config.predict.prometheus);
  }
  conclude(0);
  return tally.code;
}

void tell_unused_threshold(const PredictConfig& config, const inference::Predictor& predictor) {
  const double threshold = config.predict.threshold;
  const bool is_used = predictor.windowed().finish.kind == ops::Finish::Kind::threshold;
  if (is_used || threshold == pipelines::PredictOptions().threshold) return;
  log::warn("predict.threshold={}: no effect, it is for one mask's probability", threshold);
}

int predict(cli::Run run, const PredictConfig& config) {
  watch_signals();
  device::prepare(config.performance);
  c10::Device device = device::choose_device(config.trainer.accelerator);
  training::TrainerOptions shared;
  shared.devices = config.trainer.devices;
  const training::ProcessPlace place = place_of(shared, device);
  std::optional<StartOfWork> start;
  if (place.rank == 0) start.emplace("the first image");
  std::optional<Spinner> spinner(std::in_place, "loading the model");
  device = device_of(place, device);  // also for everything below that asks for the accelerator
  const inference::Subject subject =
      inference::load_subject(config, device, config.trainer.precision);
  if (subject.finds_boxes()) return predict_boxes(std::move(run), config, subject);
  if (is_of_whole_images(subject)) return predict_whole_images(std::move(run), config, subject);
  if (config.predict.max_detections)
    throw ConfigError(
        "predict.max_detections: it is for detectors; this model gives masks or values");
  inference::PredictorOptions options;
  options.form = config.predict.save == "auto" ? "" : config.predict.save;
  options.threshold = config.predict.threshold;
  options.temperature = config.predict.temperature_number();
  options.with_target = config.data.scores();
  options.tracks_places = inference::keeps_file_grid(subject.first(), config.predict.original_grid);
  if (config.predict.max_memory_mb) options.budget = *config.predict.max_memory_mb * 1'000'000;
  const std::vector<HeadPredictor> heads =
      inference::predictors_of(subject, config, config.predict.heads, options);
  for (const HeadPredictor& by : heads) tell_unused_threshold(config, by.predictor);
  spinner.reset();
  return run_in_processes(place, device, shared.process_timeout_s, [&](OwnProcess& self) {
    return predict_with(self, std::move(run), config, subject.precision, heads);
  });
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_predict(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::predict);
}
