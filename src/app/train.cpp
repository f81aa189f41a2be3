// The work of `train`: configuration -> data, task, optimizer -> Trainer -> checkpoints and
// results.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/entry.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/loader.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/device.h"
#include "training/batch_size.h"
#include "training/checkpoint.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer.h"

namespace cytra::app {
namespace {

using config::Node;

struct CheckpointOptions {
  std::optional<std::string> ckpt_path;
  std::optional<bool> weights_only;
  bool strict = true;
  template <class V>
  void visit(V& v) {
    v("ckpt_path", ckpt_path, "go on with this checkpoint");
    v("weights_only", weights_only, "take its weights, start everything else afresh");
    v("strict", strict, "every weight must fit");
  }
};

/// All that `train` takes.
struct TrainConfig : CommonConfig {
  training::TrainerOptions trainer;
  CheckpointOptions checkpoint;
  std::optional<int64_t> seed;
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
    v("seed", seed, "of weights, shuffling and random transforms; null: 0");
    CommonConfig::visit(v);
    using config::Unused;
    v("train", Unused{{"true"}}, "this program trains");
    v("test", Unused{{"false"}}, "use `predict` with data.with_target=true on test.csv");
    v("optimized_metric", Unused{{"null"}}, "there is no search for parameters");
    v("persist_cache", Unused{}, "of CytoDL");
  }
};
const bool added = add_program<TrainConfig>("train");

/// The components listed under `callbacks` or `logger`; null entries are off.
template <class Base>
std::vector<std::shared_ptr<Base>> make_all(const Node* nodes) {
  std::vector<std::shared_ptr<Base>> parts;
  if (nodes == nullptr) return parts;
  for (const auto& [name, node] : nodes->map) {
    if (node.is_map()) parts.push_back(Registry<Base>::instance().make(node));
  }
  return parts;
}

struct LoaderSettings {
  uint64_t seed;
  bool pin, channels_last;
  std::shared_ptr<data::CacheManager> cache;
};

data::DataLoader make_loader(const data::DataModule& module,
                             data::Split split,
                             const data::LoaderOptions& options,
                             const LoaderSettings& settings,
                             int64_t limit_batches) {
  data::DataLoaderSpec spec;
  spec.items = module.items(split);
  spec.options = options;
  spec.transforms = data::make_transforms(spec.options.transforms, split);
  if (split == data::Split::train)
    spec.batch_transforms = data::make_batch_transforms(spec.options.transforms);
  spec.seed = settings.seed;
  spec.pin = settings.pin && spec.options.pin_memory;
  spec.channels_last = settings.channels_last;
  spec.cache = settings.cache;
  spec.limit_batches = limit_batches;
  spec.shuffle = split == data::Split::train;
  if (split != data::Split::train) {  // whole images of any size
    spec.options.batch_size = 1;
    spec.options.drop_last = false;
  }
  log::info("{}: {} images", data::name_of(split), spec.items.size());
  return data::DataLoader(std::move(spec));
}

void report(const cli::Run& run,
            const training::TrainState& state,
            const std::string& folder,
            double seconds) {
  const std::string last = folder + "/checkpoints/last.ckpt";
  const std::string best = state.best_path.empty() ? last : state.best_path;
  const bool has_checkpoint = std::filesystem::exists(last) || std::filesystem::exists(best);
  cli::Results results(run.json);
  const Node* monitor = run.config.find("callbacks.model_checkpoint.monitor");
  const auto real = [](double value) {
    Node node;
    node.kind = config::Kind::real;
    node.real = value;
    return node;
  };
  if (!state.best_path.empty()) {
    results.add("best_metric", monitor->as<std::string>());
    results.add("best_score", real(std::round(state.best_score * 1e6) / 1e6));
    results.add("best_checkpoint", state.best_path);
  }
  if (std::filesystem::exists(last)) results.add("last_checkpoint", last);
  results.add("steps", Node::make_integer(state.step));
  results.add("seconds", real(std::round(seconds * 1e3) / 1e3));
  results.add("output_dir", folder);
  log::info("done in {}: {} steps{}",
            format_seconds(seconds),
            state.step,
            state.best_path.empty()
                ? ""
                : fmt::format(", best {} {:.4f}", monitor->as<std::string>(), state.best_score));
  if (has_checkpoint) {
    log::info("go on with it:  {} {}",
              run.command_line,
              cli::shell_quote("checkpoint.ckpt_path=" + last));
    log::info(
        "predict:        {}",
        command("predict", {"checkpoint.ckpt_path=" + best, "data.path=IMAGE_OR_FOLDER_OR_CSV"}));
  }
  results.print();
}

/// What data.batch_size=AUTO stands for: what the checkpoint was trained with, else it is tried
/// out.
int64_t choose_batch_size(const data::DataModule& module,
                          const LoaderSettings& settings,
                          training::Task& task,
                          const std::string& precision,
                          const std::string& checkpoint) {
  if (!checkpoint.empty()) {
    const Node before = training::checkpoint_config(checkpoint);
    if (before.get<int64_t>("data.batch_size", 0) > 0)
      return before.get<int64_t>("data.batch_size");
  }
  data::LoaderOptions options = module.loader();
  options.batch_size = 1;
  options.num_workers = 0;
  data::DataLoader loader = make_loader(module, data::Split::train, options, settings, 1);
  loader.start_epoch(0);
  const std::optional<data::Batch> one = loader.next();
  const auto images = static_cast<int64_t>(module.items(data::Split::train).size());
  return training::find_batch_size(task, one.value(), precision, images);
}

/// A checkpoint's place in its epoch counts batches; the order of images follows from the seed.
void fit_position(training::TrainState& state,
                  const std::string& checkpoint,
                  int64_t batch_size,
                  int64_t seed) {
  const Node before = training::checkpoint_config(checkpoint);
  if (before.get<int64_t>("seed", 0) != seed) {
    log::warn("{}: trained with seed {}, now {}: images come in another order",
              checkpoint,
              before.get<int64_t>("seed", 0),
              seed);
  }
  const int64_t size = before.get<int64_t>("data.batch_size", 1);
  if (state.batch == 0 || size == batch_size) return;
  const int64_t images = state.batch * size;
  state.batch = images / batch_size;
  log::warn("{}: after {} images of epoch {} with data.batch_size={}, now {}: {} images come again",
            checkpoint,
            images,
            state.epoch,
            size,
            batch_size,
            images - state.batch * batch_size);
}

/// Where the time went, and which images were left out.
void report_data(const data::Timing& timing,
                 const data::DataLoader& train,
                 const data::DataLoader& valid,
                 const LoaderSettings& settings,
                 const data::LoaderOptions& options) {
  std::map<std::string, std::string> broken = train.stats().broken;
  broken.merge(valid.stats().broken);
  if (!broken.empty()) {
    log::warn("{} images could not be loaded and were {}:",
              broken.size(),
              options.on_error == "skip" ? "left out" : "replaced");
    for (const auto& [id, why] : broken) log::warn("  {}", why);
  }
  data::CacheManager::Stats cache;
  if (settings.cache) cache = settings.cache->stats();
  const int64_t asked = cache.ram_hits + cache.disk_hits + cache.misses;
  if (asked > 0) {
    log::info("cache: {} of {} images from memory ({}), {} from disk, {} made",
              cache.ram_hits,
              asked,
              format_bytes(static_cast<double>(cache.ram_bytes)),
              cache.disk_hits,
              cache.misses);
  }
  const std::string line = data::verdict(
      timing, options, cache, std::thread::hardware_concurrency(), /*is_on_gpu=*/settings.pin);
  if (!line.empty()) log::info("{}", line);
}

int train(cli::Run run, const TrainConfig& config) {
  const auto begin = std::chrono::steady_clock::now();
  const training::TrainerOptions& options = config.trainer;
  const c10::Device device = perf::choose_device(options.accelerator);
  const int64_t seed = config.seed.value_or(0);
  at::manual_seed(static_cast<uint64_t>(seed));
  // The user's mistakes show before the run folder is made.
  const auto module = Registry<data::DataModule>::instance().make(config.data);
  const auto task = Registry<training::Task>::instance().make(config.task);
  const auto optimizer = Registry<training::Optimizer>::instance().make(config.optimizer);
  const auto scheduler = Registry<training::Scheduler>::instance().make(config.scheduler);
  nn::Model& model = task->model();
  nn::place_model(model, config.task.at("model"), device);
  const LoaderSettings settings{static_cast<uint64_t>(seed),
                                device.is_cuda(),
                                model.channels_last,
                                data::make_cache(module->loader())};
  const std::string checkpoint = config.checkpoint.ckpt_path.value_or("");
  data::LoaderOptions loading = module->loader();
  if (loading.batch_size == 0) {
    loading.batch_size = choose_batch_size(*module, settings, *task, options.precision, checkpoint);
    run.config.find("data")->set("batch_size", Node::make_integer(loading.batch_size));
  }
  data::DataLoader train_loader =
      make_loader(*module, data::Split::train, loading, settings, options.limit_train_batches);
  const bool has_validation = options.limit_val_batches != 0;
  data::DataLoader valid_loader =
      has_validation
          ? make_loader(*module, data::Split::valid, loading, settings, options.limit_val_batches)
          : data::DataLoader({});
  optimizer->attach(nn::state_of(model));
  training::TrainState state;
  if (!checkpoint.empty()) {
    remove_stale_temporaries(
        std::filesystem::path(checkpoint).parent_path().string());  // of the run that was killed
    const bool strict = config.checkpoint.strict;
    if (config.checkpoint.weights_only.value_or(false)) {
      training::load_weights(checkpoint, model, strict);
    } else {
      state = training::load_checkpoint(checkpoint, model, *optimizer, strict);
      fit_position(state, checkpoint, loading.batch_size, seed);
    }
    log::info("from {}: epoch {}, step {}", checkpoint, state.epoch, state.step);
  }
  perf::apply(config.performance, device);
  const std::string folder = open_run_folder(run);
  const auto callbacks = make_all<training::Callback>(run.config.find("callbacks"));
  const auto loggers = make_all<training::Logger>(run.config.find("logger"));
  log::info("cytra {}, {}, seed {}", version(), perf::describe(device), seed);
  log::info("{}: {} parameters; run folder {}",
            config.task.get<std::string>("model._target_"),
            nn::count_parameters(model),
            folder);

  const auto save = [&](const std::string& path, const training::TrainState& at) {
    training::save_checkpoint(path, at, model, *optimizer, run.config);
  };
  training::Trainer trainer(options, callbacks, loggers, save);
  state = trainer.fit(*task, *optimizer, *scheduler, train_loader, valid_loader, state);
  report_data(trainer.timing(), train_loader, valid_loader, settings, loading);
  const int signal = training::Trainer::interrupted();
  if (signal != 0) {
    make_folders(folder + "/checkpoints");
    save(folder + "/checkpoints/last.ckpt", state);
    log::warn("interrupted at step {}; the state is saved", state.step);
  }
  report(run,
         state,
         folder,
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_train(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::train);
}
