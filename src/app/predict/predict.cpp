// The work of `predict`: a trained model over images, to files.
#include <cmath>
#include <filesystem>
#include <optional>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/predict/work_of.h"
#include "app/run/launch.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/run_lock.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "base/timers.h"
#include "config/text_of.h"
#include "device/device.h"
#include "pipelines/job/own_folder.h"
#include "pipelines/job/stamp.h"
#include "pipelines/predict/pipeline.h"

namespace cytra::app {
namespace {
const bool predict_is_added = add_program<PredictConfig>("predict");

using pipelines::DoneRecord;
using pipelines::PredictStages;
using pipelines::PredictWork;
using pipelines::Tally;

/// The options that can't change the result of an image: all others are in its stamp. The model is
/// there by its fingerprint, predict.save by the form that it chose, and the device by its
/// precision.
std::vector<std::string_view> options_without_effect() {
  std::vector<std::string_view> keys{"checkpoint",
                                     "spatial_dims",  // model
                                     "path",
                                     "split",
                                     "with_target",
                                     "on_error",
                                     "on_mismatch",
                                     "batch_size",  // data
                                     "save",
                                     "heads",
                                     "frames",
                                     "resume",
                                     "dry_run",  // predict
                                     "max_memory_mb",
                                     "prometheus",
                                     "timer",
                                     "profiler",
                                     "accelerator",
                                     "devices",
                                     "precision",
                                     "limit_predict_batches",  // trainer
                                     "experiment_name",
                                     "run_name",
                                     "task_name",
                                     "paths"};
  keys.insert(keys.end(), pipelines::kOptionsOfSpeed.begin(), pipelines::kOptionsOfSpeed.end());
  return keys;
}

/// All that results depend on, except the images.
std::string settings_of(const PredictConfig& config,
                        const std::string& precision,
                        const PredictWork& work) {
  const config::Node& trained = work.model().config;
  return fmt::format("{} {} {} {} {}",
                     work.fingerprint(),
                     config::to_json(trained.at("data.transforms")),
                     config::to_json(trained.at("task")),
                     precision,
                     config::text_of(config, options_without_effect()));
}

/// The inputs that this run is to predict.
std::vector<data::Sample> inputs_of(const PredictConfig& config,
                                    const PredictWork& work,
                                    Tally& tally) {
  std::vector<data::Sample> inputs = pipelines::list_inputs(
      config.data, work.columns(config.data.scores()), tally.leaving_out(), work.wants());
  if (!inputs.empty()) {
    inputs.resize(static_cast<std::size_t>(
        config.trainer.limit.of(std::ssize(inputs), "trainer.limit_predict_batches")));
  }
  tally.images += std::ssize(inputs);
  return inputs;
}

/// Reports for predict.dry_run what would be done, and the time that it takes by a first
/// measurement.
int tell_plan(PredictWork& work, const std::vector<data::Sample>& inputs, Tally& tally) {
  PredictWork::Plan all;
  for (const data::Sample& input : inputs) {
    try {
      const pipelines::Frames frames = pipelines::frames_of(input, work.source_key(), work.parts());
      const PredictWork::Plan plan = work.plan(frames[0]);
      const auto count = std::ssize(frames);
      const std::string several = count == 1 ? "" : fmt::format("{} images of ", count);
      if (!plan.text.empty()) log::info("{}: {}{}", input.id, several, plan.text);
      all.windows += count * plan.windows;
      all.bytes = std::max(all.bytes, plan.bytes);
      all.seconds += static_cast<double>(count) * plan.seconds;
    } catch (const Error& error) {
      tally.leave_out(input.id, error);
    }
  }
  tally.results.add("windows", config::Node::make_integer(all.windows));
  tally.results.add("memory_mb", std::round(all.bytes / 1e6));
  tally.results.add("seconds", std::round(all.seconds * 10) / 10);
  tally.results.print();
  log::info("{} images{}: about {}{} on {}{}",
            inputs.size(),
            all.windows == 0 ? "" : fmt::format(" by {} windows", all.windows),
            format_seconds(all.seconds),
            all.bytes == 0 ? "" : fmt::format(" and {} of memory", format_bytes(all.bytes)),
            device::describe(work.device()),
            work.engine().empty() ? "" : ", " + work.engine());
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

/// Gathers the sums, error codes and counts of all processes.
void gather(training::Processes& processes, PredictWork& work, Tally& tally) {
  if (processes.is_alone()) return;
  const training::ProcessPlace& place = processes.place();
  const at::Tensor codes = at::zeros({place.size}, at::kDouble);
  codes[place.rank] = tally.code;
  const at::Tensor resumed =
      at::tensor({static_cast<double>(tally.resumed)}, at::TensorOptions(at::kDouble));
  std::vector<at::Tensor> sums{codes, resumed};
  for (const at::Tensor& own : work.sums()) sums.push_back(own);
  processes.sum(sums);
  for (int64_t rank = 0; rank < place.size && tally.code == 0; ++rank)
    tally.code = static_cast<int>(codes[rank].item<double>());
  // This is counted once, as there may be further heads.
  tally.resumed = processes.is_first() ? static_cast<int64_t>(resumed.item<double>()) : 0;
}

/// Adds what the other processes have written, so that the first process can report it.
DoneRecord::Others add_others(DoneRecord& record, Tally& tally) {
  DoneRecord::Others others = record.of_others();
  for (const auto& [kind, path] : others.files) tally.results.add_item(kind, path);
  for (const auto& [image, code] : others.failed) tally.results.add_item("failed", image);
  tally.done += others.done;
  return others;
}

/// Predicts all inputs into `folder`. `conclude` is called with the signal when one ends the
/// program.
void predict_head(OwnProcess& self,
                  const PredictConfig& config,
                  const std::string& precision,
                  PredictWork& work,
                  const std::vector<data::Sample>& inputs,
                  const std::string& folder,
                  Tally& tally,
                  PredictStages& stages,
                  training::Profile* profile,
                  const std::function<void(int signal)>& conclude) {
  DoneRecord record(folder, work.record(), self.processes.place().rank);
  pipelines::PredictPipeline pipeline({config.data,
                                       config.predict,
                                       settings_of(config, precision, work),
                                       folder,
                                       tally,
                                       self.processes,
                                       stages,
                                       record,
                                       profile},
                                      work);
  const bool is_alone = self.processes.is_alone(), is_first = self.processes.is_first();
  const auto report = [&] {
    const DoneRecord::Others others =
        is_alone || !is_first ? DoneRecord::Others() : add_others(record, tally);
    if (is_first) work.report(tally.results);
    return others;
  };
  {
    const pipelines::EndOnSignal end_on_signal(tally, [&](int signal) {
      report();
      conclude(signal);
    });
    Progress progress("predicting", std::ssize(inputs));
    pipeline.run(inputs, progress);
  }
  gather(self.processes, work, tally);
  const DoneRecord::Others others = report();
  if (is_first && tally.done > 0) pipeline.finish(inputs, others);
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
                 const std::vector<HeadWork>& heads) {
  const Stopwatch stopwatch;
  Tally tally(run.json);
  PredictWork& first = *heads.front().work;
  std::vector<data::Sample> inputs = inputs_of(config, first, tally);
  if (config.predict.dry_run) {
    if (heads.size() > 1) log::info("of each of {} heads:", heads.size());
    return tell_plan(first, inputs, tally);
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
  log::info(
      "{}: {} images on {}", first.model().path, tally.images, device::describe(first.device()));
  PredictStages stages;
  if (is_first && config.predict.prometheus) write_figures(stages, *config.predict.prometheus);

  const auto conclude = [&](int signal) {
    if (!is_first) return;
    tally.conclude(tally.done > 0 || signal != 0 ? folder : "",
                   "predicted in " + format_seconds(stopwatch.seconds()),
                   signal,
                   first.makes_tables() ? pipelines::kResumeHint : "");
  };
  const auto profile = pipelines::make_profile(config.predict.profiler,
                                               first.device(),
                                               folder,
                                               self.processes.place().rank,
                                               first.model().network.get());
  for (const auto& [head, work] : heads) {
    if (work.get() != &first) inputs = inputs_of(config, *work, tally);  // other targets
    const std::string own = head.empty() ? folder : folder + "/" + head;
    make_folders(own);
    predict_head(
        self, config, precision, *work, inputs, own, tally, stages, profile.get(), conclude);
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
  inference::Subject subject = inference::load_subject(config, device, config.trainer.precision);
  inference::scale_objects(subject, config.predict.diameter, config.predict.diameter_um);
  const std::vector<HeadWork> heads = works_of(subject, config);
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
