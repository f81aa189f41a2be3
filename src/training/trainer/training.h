#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"
#include "training/callback.h"
#include "training/checkpoint.h"
#include "training/grad_scaler.h"
#include "training/precision.h"
#include "training/processes/gradient_average.h"
#include "training/processes/processes.h"
#include "training/trainer/checkpoint_writer.h"
#include "training/trainer/compiled_step.h"
#include "training/trainer/evaluator.h"
#include "training/trainer/nonfinite_steps.h"
#include "training/trainer/step.h"
#include "training/trainer/stop_condition.h"
#include "training/trainer/training_log.h"
#include "training/trainer/training_plan.h"
#include "training/trainer_options.h"

namespace cytra::data {
class DataLoader;
}

namespace cytra::training {

struct Feeds;

/// One training of a Trainer, in its implementation. The loop, from fit() down to a step, is in
/// training.cpp; independent parts (when it ends, what it logs, how it evaluates and writes) have
/// their own files.
class Training {
 public:
  Training(TrainerOptions options,
           Task& task,
           Optimizer& optimizer,
           Scheduler& scheduler,
           std::vector<std::shared_ptr<Callback>> callbacks,
           std::vector<std::shared_ptr<Logger>> loggers,
           config::Node config,
           Processes* processes);
  void resume(const std::string& path, bool strict);
  void fit(data::DataLoader& train, data::DataLoader& valid);
  Metrics evaluate(data::DataLoader& loader,
                   const std::string& stage,
                   const std::string& checkpoint);
  void save(const std::string& path);
  TrainState& state() { return state_; }
  const StopCondition& stop() const { return stop_; }
  const TrainingLog& log() const { return log_; }

 private:
  void say_jump_of_rate();
  Rates next_rates() const;
  void run(Feeds& feeds);
  void train_epoch(Feeds& feeds);
  void train_batch(data::Batch batch, BatchGroup& group);
  at::Tensor forward_and_backward(const data::Batch& batch, const BatchGroup& group);
  void finish_group(BatchGroup& group);
  void take_outcome();
  void sanity_check(Feeds& feeds);
  bool is_validation_due() const;
  void keep_for_validation(const Stopwatch& stopwatch, int64_t done, int64_t batches);
  bool leaves_validation() const;
  void validate(Feeds& feeds);
  void end_epoch(Feeds& feeds);
  void call(const char* name, void (Callback::*hook)(Context&), const data::Batch* batch = nullptr);
  void carry_out();
  void write_checkpoint();
  void on_exception(const std::string& what);

  TrainerOptions options_;
  std::unique_ptr<Processes> alone_;
  Processes& processes_;
  std::unique_ptr<GradientAverage> average_;  // null: alone
  bool syncs_norms_ = false;                  // of all processes
  Task& task_;
  Optimizer& optimizer_;
  Scheduler& scheduler_;
  std::vector<std::shared_ptr<Callback>> callbacks_;
  std::vector<std::shared_ptr<Logger>> loggers_;
  config::Node config_;
  Precision precision_;
  c10::Device device_;
  GradScaler scaler_;
  CheckpointedObjects objects_;
  CheckpointWriter writer_;
  TrainState state_;
  TrainingPlan plan_;
  int64_t rows_of_last_ = 0;  // of an epoch's last batch, until it was tried
  StopCondition stop_;
  TrainingLog log_;
  Evaluator evaluator_;
  NonfiniteSteps nonfinite_;
  Context context_;
  std::unique_ptr<CompiledStep> compiled_;  // null: steps are made as they are
  std::unique_ptr<PendingStep> pending_;    // the newest step, whose numbers may be on their way
  int64_t edge_ = 0;                        // state_.batch as of the newest step's edge
  int64_t edge_before_ = 0;                 // ... and of the one before, in this epoch
};

}  // namespace cytra::training
