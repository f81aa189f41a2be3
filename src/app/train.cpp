// The work of `train`: configuration -> data, task, optimizer -> Trainer -> checkpoints and
// results.
#include <chrono>
#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/entry.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/registry.h"
#include "data/loader.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/device.h"
#include "training/checkpoint.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer.h"

namespace cytra::app {
namespace {

using config::Node;

/// The components listed under `callbacks` or `logger`: a map of name to node; null entries are
/// off.
template <class Base>
std::vector<std::shared_ptr<Base>> make_all(const Node& root, const char* group, const char* what) {
  std::vector<std::shared_ptr<Base>> parts;
  const Node* nodes = root.find(group);
  if (nodes == nullptr || nodes->is_null()) return parts;
  for (const auto& [name, node] : nodes->map) {
    if (!node.is_null()) parts.push_back(Registry<Base>::instance().make(node, what));
  }
  return parts;
}

data::DataLoader make_loader(const data::DataModule& module,
                             data::Split split,
                             uint64_t seed,
                             bool pin) {
  data::DataLoaderSpec spec;
  spec.items = module.items(split);
  spec.options = module.loader();
  spec.transforms = data::make_transforms(spec.options.transforms, split);
  spec.seed = seed;
  spec.pin = pin && spec.options.pin_memory;
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

int train(const cli::Run& given) {
  const auto begin = std::chrono::steady_clock::now();
  cli::Run run = given;
  const Node& root = run.config;
  const auto options = config::parse<training::TrainerOptions>(root.at("trainer"));
  const c10::Device device = perf::choose_device(options.accelerator);
  const auto seed = root.get<int64_t>("seed", 0);
  at::manual_seed(static_cast<uint64_t>(seed));
  // The user's mistakes show before the run folder is made.
  const auto module = Registry<data::DataModule>::instance().make(root.at("data"), "data module");
  const auto task = Registry<training::Task>::instance().make(root.at("task"), "task");
  const auto optimizer =
      Registry<training::Optimizer>::instance().make(root.at("optimizer"), "optimizer");
  const auto scheduler =
      Registry<training::Scheduler>::instance().make(root.at("scheduler"), "scheduler");
  data::DataLoader train_loader =
      make_loader(*module, data::Split::train, static_cast<uint64_t>(seed), device.is_cuda());
  const bool has_validation = options.limit_val_batches != 0;
  data::DataLoader valid_loader =
      has_validation
          ? make_loader(*module, data::Split::valid, static_cast<uint64_t>(seed), device.is_cuda())
          : data::DataLoader({});
  nn::Model& model = task->model();
  nn::place_model(model, root.at("task.model"), device);
  optimizer->attach(nn::state_of(model));
  training::TrainState state;
  const auto checkpoint = root.get<std::string>("checkpoint.ckpt_path", "");
  if (!checkpoint.empty()) {
    remove_stale_temporaries(
        std::filesystem::path(checkpoint).parent_path().string());  // of the run that was killed
    const bool strict = root.get<bool>("checkpoint.strict", true);
    if (root.get<bool>("checkpoint.weights_only", false)) {
      training::load_weights(checkpoint, model, strict);
    } else {
      state = training::load_checkpoint(checkpoint, model, *optimizer, strict);
    }
    log::info("from {}: epoch {}, step {}", checkpoint, state.epoch, state.step);
  }
  perf::apply(config::parse<perf::PerformanceOptions>(root.at("performance")), device);
  make_all<training::Callback>(root, "callbacks", "callback");  // only to find mistakes
  const std::string folder = open_run_folder(run);
  const auto callbacks = make_all<training::Callback>(run.config, "callbacks", "callback");
  const auto loggers = make_all<training::Logger>(run.config, "logger", "logger");
  log::info("cytra {}, {}, seed {}", version(), perf::describe(device), seed);
  log::info("{}: {} parameters; run folder {}",
            root.get<std::string>("model._target_"),
            nn::count_parameters(model),
            folder);

  const auto save = [&](const std::string& path, const training::TrainState& at) {
    training::save_checkpoint(path, at, model, *optimizer, run.config);
  };
  training::Trainer trainer(options, callbacks, loggers, save);
  state = trainer.fit(*task, *optimizer, *scheduler, train_loader, valid_loader, state);
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
  return cytra::app::guarded([&] { return cytra::app::train(run); });
}
