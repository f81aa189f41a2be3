// The work of `train`: configuration -> data, task, optimizer -> Trainer -> checkpoints and
// results.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "app/optimize/kept_profile.h"
#include "app/optimize/tune.h"
#include "app/run/launch.h"
#include "app/setup/train_data.h"
#include "app/setup/train_report.h"
#include "app/train/check_targets.h"
#include "app/train/resume.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/progress.h"
#include "base/run_lock.h"
#include "base/signal_watch.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/run_config.h"
#include "device/device.h"
#include "device/fast_precision.h"
#include "nn/weights.h"
#include "tasks/head.h"
#include "training/data_identity.h"
#include "training/profiler.h"
#include "training/trainer.h"

namespace cytra::app {
namespace {

using config::Node;

const bool train_is_added = add_program<TrainConfig>("train");

/// Removes the run's folder after a mistake of the user.
void discard(const std::string& folder) {
  log::set_file("");
  remove_all_quietly(folder);
}

TrainConfig read_config(const cli::Run& run) {
  config::Problems problems;
  TrainConfig config = config::read_options<TrainConfig>(run.config, problems, run.variables);
  problems.throw_if_any();
  return config;
}

/// Takes over in another process what the first process has decided. Returns an exit code where
/// the training has ended already, else 0.
int follow_first(OwnProcess& self, cli::Run& run, TrainConfig& config, CommonPaths& common) {
  const training::Processes::Received received = self.processes.receive();
  if (received.code != 0) return received.code;
  common = take_common(received.text, run);
  config = read_config(run);
  make_folders(common.folder);
  self.own_log.open(
      fmt::format("{}/{}.rank{}.log", common.folder, run.program, self.processes.place().rank));
  return 0;
}

/// Checks that the checkpoint is of the same task. Throws: ConfigError where a training of another
/// task would continue.
void expect_same_task(const Node& before, const Node& now, const std::string& checkpoint) {
  const std::string was = config::own_name(before.get<std::string>("_target_", "")),
                    is = config::own_name(now.get<std::string>("_target_", ""));
  if (was == is) return;
  throw ConfigError(
      "{}: a training of {}, expected one of {}; checkpoint.weights_only=true begins a new one "
      "with its weights",
      checkpoint,
      was,
      is);
}

/// The configuration that is saved once the run has its folder: it names the folder, the batch
/// size that was chosen, and the decoders that follow from the images.
TrainConfig final_config(cli::Run& run, const Setup& setup, const Loaders& loaders) {
  if (setup.fitted.is_changed) {
    *run.config.find("task") = setup.fitted.task;
    *run.config.find("data.transforms") = setup.fitted.data.at("transforms");
    if (const Node* columns = setup.fitted.data.find_direct("columns"))
      run.config.find("data")->set("columns", *columns);
  }
  if (setup.data->loader().batch_size == 0)  // AUTO
    run.config.find("data")->set("batch_size", Node::make_integer(loaders.options.batch_size));
  for (const auto& [head, decoder] : loaders.decoders)
    run.config.find(head.empty() ? "task" : "task.heads." + head)->set("decoder", decoder);
  return read_config(run);
}

Callbacks callbacks_of(const TrainConfig& config,
                       const training::ProcessPlace& place,
                       const std::string& folder) {
  Callbacks callbacks = make_callbacks(config, place.rank == 0);
  const std::string own = place.rank == 0 ? "" : fmt::format(".rank{}", place.rank);
  const Callbacks profilers =
      training::make_profilers(config.trainer.profiler,
                               folder + "/profiler" + own,
                               config.performance.forbid_transfers.value_or(""));
  callbacks.insert(callbacks.end(), profilers.begin(), profilers.end());
  return callbacks;
}

void resume_training(training::Trainer& trainer,
                     const CommonPaths& common,
                     const TrainConfig& config,
                     int64_t batch_size,
                     const training::Processes& processes) {
  const std::string& checkpoint = common.checkpoint;
  if (processes.is_first()) {  // those of the run that was killed
    remove_stale_temporaries(std::filesystem::path(checkpoint).parent_path().string());
  }
  const std::string before = std::filesystem::path(checkpoint).parent_path().string();
  for (const char* kept : {"/last.ckpt", "/best.ckpt"}) own_file(before + kept);
  own_file(checkpoint);
  try {
    trainer.resume(checkpoint, config.checkpoint.strict.value_or(true));
    fit_position(trainer.state(), checkpoint, batch_size, processes.place().size, config);
  } catch (...) {
    if (processes.is_first()) discard(common.folder);
    throw;
  }
}

/// Connects with the other processes. Returns an exit code where a signal ended that, else 0.
int meet_others(OwnProcess& self, const std::string& logs) {
  const training::ProcessPlace& place = self.processes.place();
  if (self.processes.is_alone()) return 0;
  start_is_over();  // from here on all processes end together
  if (starts_others(place)) self.children.start(place);
  if (const int code = self.processes.join(self.device, logs); code != 0) return code;
  log::info("rank {} of {}, {} of them on this machine", place.rank, place.size, place.local_size);
  return 0;
}

struct Conclusion {
  int signal = 0;            // that ended it early
  training::Metrics tested;  // with the best weights, where that was asked for
};

/// Saves a training that was interrupted, or tests a complete one.
Conclusion conclude(training::Trainer& trainer,
                    Loaders& loaders,
                    const TrainConfig& config,
                    const std::string& folder) {
  start_is_over();
  Conclusion conclusion{trainer.signal(), {}};
  if (conclusion.signal != 0) {
    make_folders(folder + "/checkpoints");
    trainer.save(folder + "/checkpoints/last.ckpt");
    log::warn("interrupted at step {}; the state is saved", trainer.state().step);
  } else if (config.test) {
    conclusion.tested = trainer.evaluate(loaders.test, "test", trainer.state().best_path);
    conclusion.signal = trainer.signal();
    if (conclusion.signal != 0) {
      conclusion.tested.clear();  // of some of the images only
      log::warn("interrupted in the test; the training itself is done");
    }
  }
  return conclusion;
}

Conclusion train_and_conclude(training::Trainer& trainer,
                              Loaders& loaders,
                              const Loggers& loggers,
                              const TrainConfig& config,
                              const OwnProcess& self,
                              const std::string& folder) {
  const training::TrainState& state = trainer.state();
  const int64_t first_step = state.step;
  bool is_trained = false;
  Conclusion conclusion;
  try {
    trainer.fit(loaders.train, loaders.valid);
    is_trained = true;
    report_data(trainer.timing(), loaders, self.device);
    conclusion = conclude(trainer, loaders, config, folder);
  } catch (const std::exception& error) {
    close_loggers(loggers, state, {}, "failed: " + split(error.what(), '\n').front());
    is_trained = is_trained || state.step > first_step;
    if (self.processes.is_first() && exit_code(error) == 2 && !is_trained) discard(folder);
    throw;
  }
  close_loggers(
      loggers, state, results_of(state), conclusion.signal == 0 ? "finished" : "interrupted");
  return conclusion;
}

/// The configuration with which a checkpoint goes on. Throws: ConfigError for another task.
TrainConfig resumed_config(cli::Run& run, const std::string& checkpoint) {
  const Node before = nn::checkpoint_config(checkpoint).at("task");
  expect_same_task(
      before, config::keep_environment(run.config, run.composed).at("task"), checkpoint);
  tasks::keep_decoders(*run.config.find("task"), before);
  return read_config(run);
}

/// Warns of targets that a training can't use as they are. Throws: DataError where none can be.
void warn_of_targets(const Setup& setup) {
  constexpr int64_t kCheckedImages = 8;  // images of a split
  for (const std::string& problem : check_targets(setup, kCheckedImages, /*may_end=*/true))
    log::warn("{}", problem);
}

/// What the training images are. Throws: ConfigError where a training that goes on has others.
Node expect_same_images(const TrainConfig& config,
                        const Loaders& loaders,
                        const Node& kept_config,
                        const std::string& checkpoint,
                        bool is_resumed) {
  const Node* const path = config.data.find_direct("path");
  Node identity = training::identity_of(path == nullptr ? "" : path->string, loaders.train.items());
  if (!is_resumed) return identity;
  const std::string asked = config.checkpoint.ckpt_path.value_or("");
  training::expect_same_training(checkpoint, identity, kept_config, asked == checkpoint);
  return identity;
}

/// Whether no image of the validation is trained on.
bool are_held_out(const Loaders& loaders) {
  std::set<std::string> learned;
  for (const data::Sample& sample : loaders.train.items()) learned.insert(sample.id);
  const auto& valid = loaders.valid.items();
  return std::ranges::none_of(
      valid, [&](const data::Sample& sample) { return learned.count(sample.id) > 0; });
}

int train_with(OwnProcess& self, cli::Run run, TrainConfig config) {
  const Stopwatch stopwatch;
  training::Processes& processes = self.processes;
  const bool is_first = processes.is_first();
  std::optional<StartOfWork> start;
  if (is_first) start.emplace("the first step");
  std::optional<Spinner> spinner(std::in_place, "reading the data");
  CommonPaths common;
  if (is_first) {
    common.checkpoint = checkpoint_of(config.checkpoint, run);
  } else if (const int code = follow_first(self, run, config, common); code != 0) {
    return code;
  }
  const std::string &folder = common.folder, &checkpoint = common.checkpoint;
  const bool is_resumed = !checkpoint.empty() && !config.checkpoint.weights_only.value_or(false);
  if (is_first && is_resumed) config = resumed_config(run, checkpoint);
  if (processes.is_alone() && !is_resumed)
    config = with_profile_that_holds(run, std::move(config), self.device);
  if (processes.is_alone()) config = tuned(std::move(config), self.device);
  const Setup setup(config, self.device, processes.place(), is_resumed ? "" : checkpoint);
  if (is_first && !is_resumed) warn_of_targets(setup);
  spinner.emplace("preparing the training");
  Loaders loaders(config, setup, is_resumed ? checkpoint : "");
  std::optional<RunLock> lock;
  Node kept_config = config::keep_environment(run.config, run.composed);
  if (is_first) {
    const Node identity = expect_same_images(config, loaders, kept_config, checkpoint, is_resumed);
    common.folder = make_with_start([&] { return open_run_folder(run); });
    lock.emplace(folder);
    config = final_config(run, setup, loaders);
    kept_config = config::keep_environment(run.config, run.composed);
    kept_config.set("trained_on", identity);
  }
  spinner.reset();
  processes.send(text_of(common, run));
  const Loggers loggers = make_loggers(config, is_first);
  training::Trainer trainer(config.trainer,
                            *setup.task,
                            *setup.optimizer,
                            *setup.scheduler,
                            callbacks_of(config, processes.place(), folder),
                            loggers,
                            kept_config,
                            &processes);
  const training::TrainState& state = trainer.state();
  if (is_resumed) resume_training(trainer, common, config, loaders.options.batch_size, processes);
  const std::string device = device::describe(self.device);
  log::info("cytra {}, {}, seed {}", version(), device, setup.seed);
  if (const int code = meet_others(self, folder + "/" + run.program); code != 0) return code;
  log::info("{}: {} parameters; run folder {}",
            config.task.get<std::string>("model._target_"),
            nn::count_parameters(setup.task->model()),
            folder);
  if (!checkpoint.empty())
    log::info("from {}: epoch {}, step {}", checkpoint, state.epoch, state.step);
  const int64_t first_step = state.step;
  open_loggers(loggers, run, folder, state.step, device);
  const Conclusion conclusion = train_and_conclude(trainer, loaders, loggers, config, self, folder);
  processes.finish();
  if (is_first) {
    const auto& valid = loaders.valid.items();
    report(run,
           config,
           *setup.task,
           state,
           conclusion.tested,
           valid.empty() ? loaders.train.items() : valid,
           are_held_out(loaders),
           folder,
           stopwatch.seconds());
    if (is_resumed && state.step == first_step && conclusion.signal == 0) {
      log::warn(
          "nothing was left to do: {} had all {} steps of this training; a larger "
          "trainer.max_epochs (trainer.max_steps) goes on with it",
          checkpoint,
          state.step);
    }
  }
  return conclusion.signal == 0 ? 0 : signal_exit_code(conclusion.signal);
}

int train(cli::Run run, const TrainConfig& given) {
  watch_signals();
  TrainConfig config = given;
  c10::Device device = choose_device(config);
  config.trainer.precision = device::precision_on(config.trainer.precision, device);
  const training::ProcessPlace place = place_of(config.trainer, device);
  device = device_of(place, device);
  return run_in_processes(place, device, config.trainer.process_timeout_s, [&](OwnProcess& self) {
    return train_with(self, std::move(run), config);
  });
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_train(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::train);
}
