#include "training/trainer/training_plan.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "training/callback.h"
#include "training/processes/processes.h"
#include "training/trainer_options.h"

namespace cytra::training {

TrainingPlan plan_training(const TrainerOptions& options,
                           Task& task,
                           int64_t train_batches,
                           int64_t valid_batches,
                           Processes& processes) {
  if (train_batches == 0)
    throw ConfigError(
        "the training set has no batch; check data.batch_size, data.drop_last and "
        "trainer.limit_train_batches");
  const at::Tensor all = at::tensor({train_batches, valid_batches}, at::kDouble);
  processes.sum({all});
  if (all[0].item<double>() != static_cast<double>(train_batches * processes.place().size)) {
    throw DataError(
        "{} training batches, but other processes have another number: expected the same images "
        "everywhere",
        train_batches);
  }
  TrainingPlan plan;
  plan.batches = train_batches;
  plan.has_validation = all[1].item<double>() > 0;
  if (plan.has_validation && !processes.is_alone() && task.sums().empty())
    throw ConfigError("trainer.devices: this task's metrics can't be summed over processes");
  const int64_t interval = options.val_check_interval.count;
  if (plan.has_validation && options.check_val_every_n_epoch && interval > train_batches) {
    throw ConfigError(
        "trainer.val_check_interval={}: an epoch has {} batches; expected at most that number, or "
        "trainer.check_val_every_n_epoch=null, which counts over epochs",
        interval,
        train_batches);
  }
  const int64_t accumulate = options.accumulate_grad_batches;
  const int64_t steps = (train_batches + accumulate - 1) / accumulate;  // of an epoch
  int64_t total = options.max_epochs < 0 ? -1 : options.max_epochs * steps;
  if (options.max_steps >= 0)
    total = total < 0 ? options.max_steps : std::min(total, options.max_steps);
  plan.total_steps = total;
  plan.total_epochs = options.max_epochs >= 0 ? options.max_epochs
                      : total < 0             ? -1
                                              : (total + steps - 1) / steps;
  return plan;
}

bool has_epoch(const TrainerOptions& options, int64_t epoch) {
  return options.max_epochs < 0 || epoch < options.max_epochs;
}

bool is_validation_due(const TrainerOptions& options,
                       const TrainState& state,
                       int64_t batches,
                       int64_t group_begin) {
  if (state.validated_at == state.step) return false;
  const Amount& given = options.val_check_interval;
  const auto share = static_cast<int64_t>(given.share * static_cast<double>(batches));
  const int64_t interval = given.count >= 0 ? given.count : std::max<int64_t>(1, share);
  int64_t from = group_begin, to = state.batch;
  if (!options.check_val_every_n_epoch) {  // the interval counts over epochs
    from += state.epoch * batches;
    to += state.epoch * batches;
  } else if ((state.epoch + 1) % *options.check_val_every_n_epoch != 0) {
    return false;
  }
  return to / interval > from / interval;
}

}  // namespace cytra::training
