#pragma once
// All that `train` takes, as one typed value, for every program that trains, or tries what a
// training would do.
#include <optional>
#include <string>

#include "app/run/entry.h"
#include "app/setup/plan_options.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "metrics/metric.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "training/callback.h"
#include "training/lr_finder.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer_options.h"

namespace cytra::app {

struct CheckpointOptions {
  std::optional<std::string> ckpt_path;
  std::optional<bool> weights_only, strict;
  bool autoresume = false;
  void visit(auto& v) {
    v("ckpt_path", ckpt_path, "go on with this checkpoint; last or best: of earlier runs here");
    v("autoresume",
      autoresume,
      "go on with the last checkpoint of this run's name, if there is one");
    v("weights_only",
      weights_only,
      "take its weights, start everything else afresh; also of a safetensors or PyTorch file");
    v("strict",
      strict,
      "every weight must fit; false: those that fit are taken; null: all where a training goes on, "
      "at least half where weights_only begins one with other classes or channels");
  }
};

/// Which weights are the best; callbacks refer to it.
struct BestOptions {
  std::optional<std::string> monitor;
  std::string mode = "max", filename = "epoch_{epoch:03d}";
  void visit(auto& v) {
    v("monitor", monitor, "metric that decides; null: the newest weights are the best");
    v("mode", mode, "min: lower is better", {"min", "max"});
    v("filename", filename, "file name of checkpoints, without extension");
  }
};

/// The section `performance`, with what applies to trainings only.
struct TrainPerformanceOptions : device::PerformanceOptions {
  std::optional<std::string> forbid_transfers;
  void visit(auto& v) {
    PerformanceOptions::visit(v);
    v("forbid_transfers",
      forbid_transfers,
      "a step that makes the host wait for the device: warn tells where, error ends the run",
      {"warn", "error"});
  }
};

/// The section `optimize`.
struct OptimizeOptions {
  double seconds = 60;
  void visit(auto& v) {
    v("seconds",
      seconds,
      "seconds of measuring, without set-up and warm-up; a run of --auto-optimize takes a fortieth",
      0.1,
      1e5);
  }
};

/// The configuration of a training. Components are checked, but made by Setup.
struct TrainConfig : CommonConfig {
  training::TrainerOptions trainer;
  TrainPerformanceOptions performance;
  CheckpointOptions checkpoint;
  BestOptions best;
  std::optional<int64_t> seed;
  bool test = false;
  training::LrFinderOptions lr_find;
  config::Node data, model, loss, metrics, task, optimizer, scheduler, callbacks, logger;
  PlanOptions plan;
  OptimizeOptions optimize;
  void visit(auto& v) {
    v("data", data, "where images come from", config::component<data::DataModule>());
    v("model", model, "for task.model to refer to", config::optional_component<nn::Model>());
    v("loss", loss, "for task.loss to refer to", config::optional_component<nn::Loss>());
    v("metrics", metrics, "for task.metrics to refer to", config::map_of<metrics::Metric>());
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
    v("best", best, "which weights are the best; for callbacks to refer to");
    v("lr_find", lr_find, "for --find-lr: the arguments of lightning's Tuner.lr_find");
    v("plan", plan, "of --plan");
    v("optimize", optimize, "for the program optimize");
    v("seed", seed, "seed of weights, shuffling and random transforms; null: 0");
    v("performance", performance, "switches that hold for the whole process");
    CommonConfig::visit_names(v);
    using config::Unused;
    v("train", Unused{{"true"}}, "this program trains");
    v("test", test, "afterwards, evaluate the best weights on the test set");
    v("optimized_metric", Unused{{"null"}}, "there is no search for parameters");
    v("persist_cache", Unused{}, "of CytoDL");
  }
  /// Checks the configuration. Throws: ConfigError for windows (usually patch_shape) of other
  /// dimensions than the model's.
  void check() const {
    const config::Node* window = task.find("inference_args.roi_size");
    const config::Node* dims = task.find("model.spatial_dims");
    if (window == nullptr || window->kind != config::Kind::list || dims == nullptr ||
        dims->kind != config::Kind::integer || dims->integer < 2 || dims->integer > 3)
      return;
    const auto count = std::ssize(window->list);
    if (count <= 1 || count == dims->integer) return;
    throw ConfigError(
        "task.inference_args.roi_size ({}): {} numbers, but spatial_dims is {}, expected as many; "
        "a "
        "patch_shape that is left out follows spatial_dims",
        window->origin.text(),
        count,
        dims->integer);
  }
};

}  // namespace cytra::app
