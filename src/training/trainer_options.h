#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "device/device.h"
#include "training/devices.h"
#include "training/grad_scaler_options.h"

namespace cytra::device {
const std::vector<std::string>& precision_names();  // device/precision.h, which costs ATen's
}

namespace cytra::training {

/// Some of the batches: a number of them, or a share (Lightning's int | float).
struct Amount {
  int64_t count = -1;  // -1: by share
  double share = 1;
  /// The number of batches, out of `all`. A share is rounded down. `key` names it in errors.
  /// Throws: ConfigError when a share above 0 is less than one batch.
  int64_t of(int64_t all, const std::string& key) const;
  bool is_none() const { return count == 0 || (count < 0 && share == 0); }
};
/// `otherwise` for null. Throws: ConfigError.
Amount amount_of(const config::Node& node, Amount otherwise);

/// Seconds of "DD:HH:MM:SS", or of a map of days, hours, minutes and seconds. Throws: ConfigError.
double duration_s(const config::Node& node);

/// Names, meanings and (but for max_epochs) defaults of lightning.Trainer's arguments.
struct TrainerOptions : device::DeviceOptions {
  int64_t max_epochs = 10, max_steps = -1, min_epochs = 0, min_steps = -1;
  double max_seconds = -1;  // of `max_time`; < 0: no limit
  Amount limit_train_batches, limit_val_batches, limit_test_batches, overfit_batches{0, 0};
  int64_t fast_dev_run = 0;  // batches; 0: no
  int64_t num_sanity_val_steps = 2;
  Amount val_check_interval;  // of an epoch's batches
  std::optional<int64_t> check_val_every_n_epoch = 1, steps_per_epoch;
  int64_t accumulate_grad_batches = 1, log_every_n_steps = 10, num_nodes = 1;
  Devices devices;  // of each machine
  bool sync_batchnorm = false;
  double process_timeout_s = 1800;  // of `process_timeout`
  std::optional<double> gradient_clip_val;
  double gradient_clip_norm_type = 2;  // p, infinity too
  std::string gradient_clip_algorithm = "norm", precision = "32", strategy = "auto";
  /// What happens when the loss or gradients are not finite; their step is never applied.
  ///   stop: end the run;  dump: end it after writing the batch and the state before it;
  ///   skip: go on with the next batch, unless it happens 100 times in a row.
  /// Gradients that overflow in 16-mixed are always skipped: the scaler handles them.
  std::string on_nonfinite = "stop";
  bool inference_mode = true, detect_anomaly = false, enable_progress_bar = true,
       enable_model_summary = true, enable_checkpointing = true;
  std::string deterministic_mode = "false";  // of `deterministic`: "false", "true", "warn"
  GradScalerOptions grad_scaler;
  config::Node profiler;  // for make_profilers()

  void visit(auto& v);
  /// Fills in what the values of two types mean, and what fast_dev_run and overfit_batches imply.
  /// Throws: ConfigError.
  void check();

 private:
  /// The values as they were given, where an option has two types. Null: not given.
  struct Given {
    config::Node limit_train_batches, limit_val_batches, limit_test_batches, overfit_batches,
        val_check_interval, fast_dev_run, deterministic, max_time, devices, process_timeout;
  } given_;
};

void TrainerOptions::visit(auto& v) {
  using config::Unused;
  v("max_epochs", max_epochs, "epochs; -1: no limit", -1, 1e9);
  v("max_steps", max_steps, "optimizer steps; -1: no limit", -1, 1e12);
  v("steps_per_epoch",
    steps_per_epoch,
    "optimizer steps of an epoch, whatever the number of images: few are passed several times; "
    "null: an epoch has each image once",
    1,
    1e9);
  v("min_epochs", min_epochs, "epochs that early stopping waits for", 0, 1e9);
  v("min_steps", min_steps, "optimizer steps that early stopping waits for; -1: none", -1, 1e12);
  v("max_time",
    given_.max_time,
    "DD:HH:MM:SS after which training and validation end; null: no limit");
  DeviceOptions::visit(v);
  v("devices",
    given_.devices,
    "of each machine, a process each: 2; [0, 2]: these GPUs; auto, -1: all GPUs, or one CPU");
  v("num_nodes", num_nodes, "machines, each with that many devices", 1, 1e6);
  v("strategy",
    strategy,
    "several devices average their gradients; one of these also looks for parameters without any",
    {"auto", "ddp", "ddp_spawn", "ddp_find_unused_parameters_true"});
  v("sync_batchnorm", sync_batchnorm, "statistics of batch norms over all processes");
  v("process_timeout",
    given_.process_timeout,
    "how long processes wait for each other: seconds, or DD:HH:MM:SS");
  v("precision", precision, "true: everything; mixed: products only", device::precision_names());
  v("limit_train_batches", given_.limit_train_batches, "batches of an epoch: 10, or 0.1 of them");
  v("limit_val_batches", given_.limit_val_batches, "validation batches: number or share; 0: none");
  v("limit_test_batches", given_.limit_test_batches, "test batches: number or share; 0: none");
  v("overfit_batches", given_.overfit_batches, "use only these batches, unshuffled");
  v("fast_dev_run", given_.fast_dev_run, "true: one batch of everything and no files; 5: five");
  v("num_sanity_val_steps", num_sanity_val_steps, "batches before training; -1: all", -1, 1e12);
  v("val_check_interval",
    given_.val_check_interval,
    "validate after 0.25 of an epoch, or after 100 batches; 1.0: at its end");
  v("check_val_every_n_epoch",
    check_val_every_n_epoch,
    "epochs with a validation; null: val_check_interval counts batches over epochs",
    1,
    1e9);
  v("accumulate_grad_batches", accumulate_grad_batches, "batches per optimizer step", 1, 1e9);
  v("gradient_clip_val", gradient_clip_val, "limit of the gradients; null or 0: none", 0, 1e9);
  v("gradient_clip_algorithm",
    gradient_clip_algorithm,
    "limits their joint norm, or each value",
    {"norm", "value"});
  v("gradient_clip_norm_type",
    gradient_clip_norm_type,
    "which norm that is: 2, 1, inf (the largest value; .inf in a file); torch's norm_type",
    0,
    std::numeric_limits<double>::infinity());
  v("log_every_n_steps", log_every_n_steps, "steps between two rows of the log", 1, 1e9);
  v("inference_mode", inference_mode, "validate in c10's inference mode, else without gradients");
  v("detect_anomaly", detect_anomaly, "name the operation whose gradient is NaN (slow)");
  v("deterministic", given_.deterministic, "true: the same weights again; warn: where possible");
  v("on_nonfinite",
    on_nonfinite,
    "a loss or gradient that is not finite: end; leave the step out; write batch and state, end",
    {"stop", "skip", "dump"});
  v("grad_scaler", grad_scaler, "of 16-mixed");
  v("profiler", profiler, "what to measure: simple, advanced, pytorch, transfers, or a _target_");
  v("enable_progress_bar", enable_progress_bar, "show progress");
  v("enable_model_summary", enable_model_summary, "print the model's layers");
  v("enable_checkpointing", enable_checkpointing, "false: no ModelCheckpoint writes");
  v("limit_predict_batches", Unused{{"null", "1.0"}}, "`predict` has it");
  v("default_root_dir", Unused{}, "the folder of a run is paths.output_dir");
  v("benchmark", Unused{{"false"}}, "use performance.enable_cudnn_benchmark");
  v("logger", Unused{{"true"}}, "use the group logger");
  v("barebones", Unused{{"false"}}, "use callbacks=none logger=none");
  v("reload_dataloaders_every_n_epochs", Unused{{"0"}}, "the loader lives as long as the training");
  for (const char* key : {"use_distributed_sampler", "replace_sampler_ddp"})
    v(key, Unused{{"true"}}, "every process has its share of the images");
}

}  // namespace cytra::training
