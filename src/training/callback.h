#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"
#include "training/logger.h"
#include "training/task.h"

namespace cytra::training {

class Optimizer;
struct Callback;
struct TrainerOptions;

/// Where a training stands: plain data, all of it in every checkpoint.
struct TrainState {
  int64_t epoch = 0;          // epochs finished
  int64_t batch = 0;          // batches done in the epoch under way
  int64_t step = 0;           // optimizer steps, those skipped included (Lightning's global_step)
  int64_t skipped = 0;        // steps left out since their gradients were not finite
  int64_t validated_at = -1;  // the step of the newest complete validation
  int64_t total_steps = 0;    // the training's length; -1: unknown, 0: not begun
  double lr = 0;              // with which the newest step was made
  double seconds = 0;         // spent so far, in all processes one after the other
  double loss_sum = 0;        // of the epoch under way: the losses of its batches
  int64_t loss_count = 0;     // ... and their number
  Metrics metrics;            // the newest value of everything logged
  int64_t processes = 1;      // that share the images of each step
  int64_t seed = 0;           // random numbers of a step are those of (seed, process, step)
  double best_score = 0;
  std::string best_path;  // empty: no best checkpoint yet
  std::string best_metric,
      best_mode;  // what best_score is of ("val/loss", "min"); empty: no metric
  /// The number, from 0, of the epoch of the newest step: what is logged has it, as Lightning's.
  int64_t logged_epoch() const { return batch == 0 && epoch > 0 ? epoch - 1 : epoch; }
};

/// The training as its callbacks see it, and what they may ask for. Requests are carried out after
/// the hook, in this order: log, save, stop.
struct Context {
  TrainState& state;
  Task& task;
  Optimizer& optimizer;
  const std::vector<std::shared_ptr<Logger>>& loggers;
  int64_t total_steps = 0;             // of the whole training; -1: unknown
  int64_t total_epochs = 0;            // ... -1: unknown
  int64_t batches = 0;                 // of an epoch
  bool has_validation = false;         // else on_validation_... are not called
  const data::Batch* batch = nullptr;  // in on_batch_start and on_validation_batch
  bool is_last = false;                // nothing is trained after this validation
  double lr = 0, momentum = 0;         // of the newest step; the rate before groups' lr_scale
  double loss = 0, grad_norm = 0;      // of the newest step whose numbers are known
  int64_t log_every_n_steps = 10;      // of the trainer
  const Tensor* grad_scale = nullptr;  // gradients are so many times too large; undefined: 1

  Metrics logged;                    // goes to the loggers and into state.metrics
  std::vector<std::string> save_to;  // paths of one checkpoint of the present state
  std::vector<std::string> remove;   // checkpoints to remove once that one is on the disk
  /// Functions for those of `save_to` whose failure shall be a warning. When each has one, a save
  /// that fails is a warning, and these are called, the last first.
  std::vector<std::function<void()>> undo_saves;
  const Callback* best_of = nullptr;  // whose best checkpoint state.best_* tell: the first's
  bool stop = false;                  // after min_epochs and min_steps

  /// Whether the trainer logs the step that just ended.
  bool is_logged_step() const { return state.step == 1 || state.step % log_every_n_steps == 0; }
  /// Sends metrics to the loggers alone: values that a repeated run would not repeat (times,
  /// memory) stay out of checkpoints, so that these are equal.
  void log_only(const Metrics& metrics) const;
};

/// What happens beside a training. Registered by class name, listed under `callbacks`, and called
/// in that order. An error that a hook throws ends the run and names the callback; the checkpoints
/// stay as they were.
struct Callback {
  static constexpr const char* kKind = "callback";
  virtual ~Callback() = default;
  /// Whether it has a part in a training with these options, in the first of its processes or in
  /// another one; else it is left out. Asked first of all.
  virtual bool takes_part(const TrainerOptions&, bool /*is_first_process*/) const { return true; }
  /// Called before the optimizer takes the parameters of the model, which is on its device. May be
  /// called again. Throws: ConfigError.
  virtual void prepare(nn::Model&) {}
  /// Before a checkpoint is loaded.
  virtual void attach(Task&) {}
  virtual void on_fit_start(Context&) {}
  virtual void on_epoch_start(Context&) {}
  virtual void on_batch_start(Context&) {}
  /// Called when the gradients are complete, before clipping; under 16-mixed they contain the
  /// scaler's factor.
  virtual void on_before_step(Context&) {}
  virtual void on_step_end(Context&) {}
  virtual void on_validation_start(Context&) {}
  /// Called after each batch of a validation, in inference mode.
  virtual void on_validation_batch(Context&) {}
  virtual void on_validation_end(Context&) {}
  virtual void on_epoch_end(Context&) {}
  /// Called when the run ends by an error; the state is that after the last complete step.
  virtual void on_exception(Context&, const std::string& /*what*/) {}
  /// Last, also after a signal.
  virtual void on_fit_end(Context&) {}

  /// What a checkpoint keeps: values as a map, tensors by name (the callback's own; loading copies
  /// into them after load()).
  virtual config::Node state() const { return config::Node::make_map(); }
  virtual std::map<std::string, Tensor> tensors() const;
  virtual void load(const config::Node& /*state*/) {}
  /// Both are called around every use of the weights that is not training (evaluation, a
  /// checkpoint), for weight averages: swap_in() puts the weights to be used into the model,
  /// swap_out() puts the trained ones back, the last callback first. A training whose weights
  /// can't be put back must not go on: swap_out() never fails.
  virtual void swap_in(Task&) {}
  virtual void swap_out(Task&) noexcept {}

  /// Under `callbacks`; names its part of a checkpoint. Without one the trainer gives "callback_0",
  /// by the place in its list.
  std::string name;
};

}  // namespace cytra::training
