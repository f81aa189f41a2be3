#pragma once
#include <cstdint>

namespace cytra::training {

class Processes;
struct Task;
struct TrainerOptions;
struct TrainState;

/// How long a training is.
struct TrainingPlan {
  int64_t batches = 0;                          // of an epoch, in each process
  int64_t total_steps = -1, total_epochs = -1;  // -1: unknown
  bool has_validation = false;                  // of images, in any process
};

/// The plan, once the loaders' lengths are known; all processes call it. Throws: DataError when
/// they have different numbers of batches, ConfigError when the options do not fit these lengths.
TrainingPlan plan_training(const TrainerOptions& options,
                           Task& task,
                           int64_t train_batches,
                           int64_t valid_batches,
                           Processes& processes);

/// Whether there is an epoch of this number, counted from 0.
bool has_epoch(const TrainerOptions& options, int64_t epoch);

/// Whether a validation is due now. One may be due after any batch, but is made after a step, so
/// the batches from `group_begin` to `state.batch` count.
bool is_validation_due(const TrainerOptions& options,
                       const TrainState& state,
                       int64_t batches,
                       int64_t group_begin);

}  // namespace cytra::training
