// The work of `train`: configuration -> data, task, optimizer -> Trainer -> checkpoints and
// results.
#include <chrono>
#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "app/entry.h"
#include "app/launch.h"
#include "app/train_data.h"
#include "app/train_report.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/run_lock.h"
#include "base/signals.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/registry.h"
#include "config/run_config.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/device.h"
#include "training/checkpoint.h"
#include "training/layer_freeze.h"
#include "training/lr_finder.h"
#include "training/optimizer.h"
#include "training/processes/gradient_average.h"
#include "training/processes/processes.h"
#include "training/profiler.h"
#include "training/scheduler.h"
#include "training/trainer.h"

namespace cytra::app {
namespace {

using config::Node;

struct CheckpointOptions {
  std::optional<std::string> ckpt_path;
  std::optional<bool> weights_only;
  bool strict = true, autoresume = false;
  template <class V>
  void visit(V& v) {
    v("ckpt_path", ckpt_path, "go on with this checkpoint; last or best: of earlier runs here");
    v("autoresume",
      autoresume,
      "go on with the last checkpoint of this run's name, if there is one");
    v("weights_only",
      weights_only,
      "take its weights, start everything else afresh; also of a safetensors or PyTorch file");
    v("strict", strict, "every weight must fit");
  }
};

/// All that `train` takes.
struct TrainConfig : CommonConfig {
  training::TrainerOptions trainer;
  CheckpointOptions checkpoint;
  std::optional<int64_t> seed;
  bool test = false;
  training::LrFinderOptions lr_find;
  Node data, model, task, optimizer, scheduler, callbacks, logger;
  template <class V>
  void visit(V& v) {
    v("data", data, "where images come from", config::component<data::DataModule>());
    v("model", model, "for task.model to refer to", config::optional_component<nn::Model>());
    v("task", task, "what is learned", config::component<training::Task>());
    v("optimizer", optimizer, "updates the weights", config::component<training::Optimizer>());
    v("scheduler",
      scheduler,
      "learning rate over the training",
      config::component<training::Scheduler>());
    v("trainer", trainer, "how long and on what; lightning.Trainer's arguments");
    v("callbacks", callbacks, "checkpoints, early stopping", config::map_of<training::Callback>());
    v("logger", logger, "where the numbers go", config::map_of<training::Logger>());
    v("checkpoint", checkpoint, "what to begin with");
    v("lr_find", lr_find, "of --find-lr; arguments of lightning's Tuner.lr_find");
    v("seed", seed, "of weights, shuffling and random transforms; null: 0");
    CommonConfig::visit(v);
    using config::Unused;
    v("train", Unused{{"true"}}, "this program trains");
    v("test", test, "afterwards, evaluate the best weights on the test set");
    v("optimized_metric", Unused{{"null"}}, "there is no search for parameters");
    v("persist_cache", Unused{}, "of CytoDL");
  }
};
const bool train_is_added = add_program<TrainConfig>("train");

/// The user's mistake leaves no folder behind.
void discard(const std::string& folder) {
  log::set_file("");
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

/// The components listed under `callbacks` or `logger`; null entries are off.
template <class Base>
std::vector<std::shared_ptr<Base>> make_all(const Node* nodes) {
  std::vector<std::shared_ptr<Base>> parts;
  if (nodes == nullptr) return parts;
  for (const auto& [name, node] : nodes->map) {
    if (!node.is_map()) continue;
    parts.push_back(make<Base>(node));
    if constexpr (std::is_same_v<Base, training::Callback>) parts.back()->name = name;
  }
  return parts;
}

/// What fast_dev_run, the enable_ switches and being one of several processes leave of the
/// callbacks.
void drop_callbacks(cli::Run& run, const training::TrainerOptions& options, bool is_first) {
  Node* callbacks = run.config.find("callbacks");
  if (callbacks == nullptr) return;
  for (auto& [name, node] : callbacks->map) {
    if (!node.is_map()) continue;
    const auto type = config::own_name(node.get<std::string>("_target_"));
    const bool is_writer = type == "ModelCheckpoint";
    if ((is_writer && !options.enable_checkpointing) ||
        ((is_writer || type == "EarlyStopping") && options.fast_dev_run > 0) ||
        (type == "ImageSaver" && options.fast_dev_run > 0) ||
        (ends_with(type, "ModelSummary") && !options.enable_model_summary) ||
        (!is_first &&
         (type == "ImageSaver" || type == "OutlierDetection" || ends_with(type, "ModelSummary"))))
      node = Node();
  }
}

TrainConfig read_config(const cli::Run& run) {
  config::Problems problems;
  TrainConfig config = config::read_options<TrainConfig>(run.config, problems, run.variables);
  problems.throw_if_any();
  return config;
}

/// Where a process works and who it works with.
struct Company {
  c10::Device device;
  training::Processes& processes;
  Children& children;
  OwnLog& own_log;
};

int train_with(Company& company, cli::Run run, TrainConfig config) {
  const auto begin = std::chrono::steady_clock::now();
  const c10::Device device = company.device;
  training::Processes& processes = company.processes;
  const training::Place& place = processes.place();
  Common common;
  if (!processes.is_first()) {
    const training::Processes::Received received = processes.receive();
    if (received.code != 0) return received.code;
    common = take_common(received.text, run);
    config = read_config(run);
    make_folders(common.folder);
    company.own_log.open(fmt::format("{}/{}.rank{}.log", common.folder, run.program, place.rank));
  }
  training::TrainerOptions options = config.trainer;
  const int64_t seed = config.seed.value_or(0);
  at::manual_seed(static_cast<uint64_t>(seed));
  perf::apply(config.performance, device);  // before anything is measured
  if (config.performance.num_threads == 0 && !processes.is_alone())
    at::set_num_threads(threads_of(place));
  // The user's mistakes show before the run folder is made.
  const auto module = make<data::DataModule>(config.data);
  const auto task = make<training::Task>(config.task);
  const auto optimizer = make<training::Optimizer>(config.optimizer);
  const auto scheduler = make<training::Scheduler>(config.scheduler);
  nn::Model& model = task->model();
  const training::Precision precision = training::precision_of(options.precision);
  if (precision.parameters != at::kFloat) model.to(precision.parameters);
  nn::place(model, device);
  if (options.sync_batchnorm && !processes.is_alone()) training::check_sync_batchnorm(model);
  const LoaderSettings settings{static_cast<uint64_t>(seed),
                                device.is_cuda(),
                                model.channels_last,
                                data::make_cache(module->loader()),
                                task->sample_transform(),
                                place.rank,
                                place.size,
                                expected_channels(config.task)};
  if (processes.is_first()) {
    common.checkpoint =
        checkpoint_of(config.checkpoint.ckpt_path.value_or(""), config.checkpoint.autoresume, run);
  }
  const std::string& checkpoint = common.checkpoint;
  const bool weights_only = config.checkpoint.weights_only.value_or(false);
  training::freeze_layers(run.config.find("callbacks"), model);
  optimizer->attach(model.named_parameters().pairs());
  data::LoaderOptions loading = module->loader();
  const bool is_auto = loading.batch_size == 0;
  if (is_auto) {
    loading.batch_size =
        choose_batch_size(*module, settings, *task, precision, weights_only ? "" : checkpoint);
  }
  const bool overfits = !options.overfit_batches.is_none();
  data::DataLoader train_loader = make_loader(
      *module, data::Split::train, loading, settings, options.limit_train_batches, overfits);
  data::DataLoader valid_loader =
      options.limit_val_batches.is_none()
          ? data::DataLoader({})
          : make_loader(*module, data::Split::valid, loading, settings, options.limit_val_batches);
  data::DataLoader test_loader =
      config.test
          ? make_loader(*module, data::Split::test, loading, settings, options.limit_test_batches)
          : data::DataLoader({});
  const bool is_resumed = !checkpoint.empty() && !weights_only;
  if (weights_only && !checkpoint.empty())
    nn::load_weights(checkpoint, model, config.checkpoint.strict);
  std::optional<RunLock> lock;
  if (processes.is_first()) lock.emplace(common.folder = open_run_folder(run));
  const std::string& folder = common.folder;
  if (is_auto) run.config.find("data")->set("batch_size", Node::make_integer(loading.batch_size));
  drop_callbacks(run, options, processes.is_first());
  processes.send(text_of(common, run));
  const bool logs = processes.is_first() && options.fast_dev_run == 0;
  const Loggers loggers = make_all<training::Logger>(logs ? run.config.find("logger") : nullptr);
  auto callbacks = make_all<training::Callback>(run.config.find("callbacks"));
  const std::string own = processes.is_first() ? "" : fmt::format(".rank{}", place.rank);
  if (auto profiler = training::make_profiler(options.profiler, folder + "/profiler" + own))
    callbacks.push_back(std::move(profiler));
  training::Trainer trainer(options,
                            *task,
                            *optimizer,
                            *scheduler,
                            std::move(callbacks),
                            loggers,
                            config::keep_environment(run.config, run.composed),
                            &processes);
  const training::TrainState& state = trainer.state();
  if (is_resumed) {
    if (processes.is_first()) {  // of the run that was killed
      remove_stale_temporaries(std::filesystem::path(checkpoint).parent_path().string());
    }
    try {
      trainer.resume(checkpoint, config.checkpoint.strict);
      fit_position(trainer.state(), checkpoint, loading.batch_size, place.size, run.config);
    } catch (...) {
      if (processes.is_first()) discard(folder);
      throw;
    }
  }
  log::info("cytra {}, {}, seed {}", version(), perf::describe(device), seed);
  if (!processes.is_alone()) {
    if (starts_others(place)) company.children.start(place);
    if (const int code = processes.join(device, folder + "/" + run.program); code != 0) return code;
    log::info(
        "rank {} of {}, {} of them on this machine", place.rank, place.size, place.local_size);
  }
  log::info("{}: {} parameters; run folder {}",
            config.task.get<std::string>("model._target_"),
            nn::count_parameters(model),
            folder);
  if (!checkpoint.empty())
    log::info("from {}: epoch {}, step {}", checkpoint, state.epoch, state.step);

  open_loggers(loggers, run, folder, state.step, perf::describe(device));
  training::Metrics results, tested;
  int signal = 0;
  const int64_t first_step = state.step;
  bool is_trained = false;
  try {
    trainer.fit(train_loader, valid_loader);
    is_trained = true;
    report_data(trainer.timing(), train_loader, valid_loader, settings, loading);
    signal = trainer.signal();
    if (signal != 0) {
      make_folders(folder + "/checkpoints");
      trainer.save(folder + "/checkpoints/last.ckpt");
      log::warn("interrupted at step {}; the state is saved", state.step);
    } else if (config.test) {
      tested = trainer.evaluate(test_loader, "test", state.best_path);
      signal = trainer.signal();
      if (signal != 0) {
        tested.clear();  // of some of the images only
        log::warn("interrupted in the test; the training itself is done");
      }
    }
    results = state.metrics;
    if (!state.best_path.empty()) results["best/" + best_metric(run)] = state.best_score;
  } catch (const std::exception& error) {
    close_loggers(loggers, state, {}, "failed: " + split(error.what(), '\n').front());
    is_trained = is_trained || state.step > first_step;
    if (processes.is_first() && exit_code(error) == 2 && !is_trained) discard(folder);
    throw;
  }
  close_loggers(loggers, state, results, signal == 0 ? "finished" : "interrupted");
  processes.finish();
  if (!processes.is_first()) return signal == 0 ? 0 : signal_exit_code(signal);
  report(run,
         state,
         tested,
         folder,
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return signal == 0 ? 0 : signal_exit_code(signal);
}

int train(cli::Run run, const TrainConfig& config) {
  const training::TrainerOptions& options = config.trainer;
  watch_signals();
  perf::prepare(config.performance, options.deterministic_mode);
  c10::Device device = perf::choose_device(options.accelerator);
  const training::Place place = place_of(options, device);
  if (device.is_cuda() && place.size > 1) {
    device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(gpu_of(place, count_gpus())));
    c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(device);
  }
  OwnLog own_log;
  Children children;
  training::Processes processes(
      place,
      options.process_timeout_s,
      {[&children] { return children.lost(); },
       [&](const std::string& message, int code) {  // of others, while this one is not to be had
         if (processes.is_speaker()) own_log.restore();
         log::write(log::Level::error, message);
         std::_Exit(code);
       }});
  Company company{device, processes, children, own_log};
  int code = 0;
  try {
    processes.guard([&] { code = train_with(company, std::move(run), config); });
  } catch (...) {
    if (processes.is_speaker()) own_log.restore();
    throw;
  }
  return code;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_train(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::train);
}
