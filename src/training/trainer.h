#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/visit.h"
#include "data/timing.h"
#include "perf/device.h"
#include "training/callback.h"

namespace cytra::data {
class DataLoader;
}

namespace cytra::training {

class Optimizer;
struct Scheduler;

/// Names and meanings of lightning.Trainer's arguments.
struct TrainerOptions : perf::DeviceOptions {
  int64_t max_epochs = 10, max_steps = -1, devices = 1;
  int64_t check_val_every_n_epoch = 1, limit_train_batches = -1, limit_val_batches = -1;
  int64_t accumulate_grad_batches = 1, log_every_n_steps = 10;
  double gradient_clip_val = 0;
  std::string precision = "32";
  template <class V>
  void visit(V& v) {
    v("max_epochs", max_epochs, "epochs; -1: no limit", -1, 1e9);
    v("max_steps", max_steps, "optimizer steps; -1: no limit", -1, 1e12);
    DeviceOptions::visit(v);
    v("devices", devices, "devices of this machine; more than one is not supported yet", 1, 1);
    v("precision", precision, "of the forward pass", {"32", "32-true", "bf16-mixed"});
    v("check_val_every_n_epoch",
      check_val_every_n_epoch,
      "validate after every so many epochs",
      1,
      1e9);
    v("limit_train_batches", limit_train_batches, "batches of an epoch; -1: all", -1, 1e12);
    v("limit_val_batches",
      limit_val_batches,
      "batches of a validation; -1: all, 0: no validation",
      -1,
      1e12);
    v("accumulate_grad_batches", accumulate_grad_batches, "batches per optimizer step", 1, 1e9);
    v("gradient_clip_val",
      gradient_clip_val,
      "largest 2-norm of the gradients; 0: no limit",
      0,
      1e9);
    v("log_every_n_steps", log_every_n_steps, "steps between two rows of the log", 1, 1e9);
    visit_unused(v);
  }

 private:
  template <class V>
  void visit_unused(V& v);  // arguments that CytoDL's users carry
};

template <class V>
void TrainerOptions::visit_unused(V& v) {
  using config::Unused;
  v("default_root_dir", Unused{}, "the folder of a run is paths.output_dir");
  v("min_epochs", Unused{{"0", "1"}}, "only early_stopping ends a training early");
  v("max_time", Unused{{"null"}}, "use max_epochs or max_steps");
  v("strategy", Unused{{"auto"}}, "one device is used");
  v("num_nodes", Unused{{"1"}}, "one device is used");
  v("sync_batchnorm", Unused{{"false"}}, "one device is used");
  v("deterministic", Unused{{"false"}}, "a CPU gives the same weights again; a GPU may not");
  v("detect_anomaly", Unused{{"false"}}, "a loss that is not finite ends the run");
  v("benchmark", Unused{{"false"}}, "use performance.enable_cudnn_benchmark");
  v("num_sanity_val_steps", Unused{}, "there is no validation before the training");
  v("gradient_clip_algorithm", Unused{{"norm"}}, "gradients are clipped by their norm");
  v("val_check_interval", Unused{{"1", "1.0"}}, "use check_val_every_n_epoch");
  v("overfit_batches", Unused{{"0", "0.0"}}, "use limit_train_batches");
  v("fast_dev_run", Unused{{"false", "0"}}, "use max_steps");
  v("profiler", Unused{{"null"}}, "use `benchmark_performance`");
  v("enable_progress_bar", Unused{}, "use --quiet");
  v("enable_model_summary", Unused{}, "of Lightning");
  v("enable_checkpointing", Unused{{"true"}}, "use callbacks=none");
}

class Trainer {
 public:
  using Save = std::function<void(const std::string& path, const TrainState&)>;

  Trainer(TrainerOptions options,
          std::vector<std::shared_ptr<Callback>> callbacks,
          std::vector<std::shared_ptr<Logger>> loggers,
          Save save);

  /// Trains from `state` on and returns the final state. The task's model is on its device already.
  /// SIGINT and SIGTERM end it after the step under way, with `interrupted()` set.
  /// Throws: DivergedError when the loss is not finite; what data loading, callbacks and saving
  /// throw.
  TrainState fit(Task& task,
                 Optimizer& optimizer,
                 const Scheduler& scheduler,
                 data::DataLoader& train,
                 data::DataLoader& valid,
                 TrainState state);
  /// The signal that ended the training, or 0.
  static int interrupted();
  /// Of the training batches so far.
  const data::Timing& timing() const { return timing_; }

 private:
  struct Step;
  void train_epoch(Step& step);
  void optimize(Step& step);
  void validate(Step& step);
  void carry_out(Control& control, const TrainState& state);
  /// `times`: for the loggers alone, since no two runs have the same.
  void log(const Metrics& metrics, TrainState& state, const Metrics& times = {});

  TrainerOptions options_;
  std::vector<std::shared_ptr<Callback>> callbacks_;
  std::vector<std::shared_ptr<Logger>> loggers_;
  Save save_;
  data::Timing timing_;
  bool stop_ = false;
};

}  // namespace cytra::training
