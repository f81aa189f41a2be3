#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"
#include "training/callback.h"
#include "training/trainer_options.h"

namespace cytra::data {
class DataLoader;
struct Timing;  // data/loader/timing.h
}  // namespace cytra::data

namespace cytra::training {

class Processes;
struct Scheduler;
class Training;

/// Trains a task: batches, steps and validations. What is learned belongs to the task, what else
/// happens during a training to callbacks, and where numbers are written to loggers.
/// Follows lightning.Trainer in names and meaning; where it differs, docs/training.md says so.
class Trainer {
 public:
  /// The model is on its device already. An optimizer that is not attached yet is attached to all
  /// of its parameters. `config` goes into every
  /// checkpoint. `processes`: the processes that train together, connected already; null: this one
  /// alone. Then all of them make the same calls, but loggers are for the first alone, which
  /// writes all files.
  Trainer(TrainerOptions options,
          Task& task,
          Optimizer& optimizer,
          Scheduler& scheduler,
          std::vector<std::shared_ptr<Callback>> callbacks = {},
          std::vector<std::shared_ptr<Logger>> loggers = {},
          config::Node config = config::Node::make_map(),
          Processes* processes = nullptr);
  ~Trainer();

  /// Continues a training from a checkpoint. Throws: as load_checkpoint().
  void resume(const std::string& path, bool strict = true);
  /// The position of the next batch; may be changed before fit().
  TrainState& state();

  /// Trains until max_epochs, max_steps, max_time, a callback or a signal (base/signals.h) ends it;
  /// then every checkpoint is on the disk. An accumulated group of batches is never left half done.
  /// Throws: DivergedError when the loss or gradients are not finite; what loading, the task,
  /// callbacks and saving throw, after the callbacks' on_exception().
  void fit(data::DataLoader& train, data::DataLoader& valid);
  /// The metrics of a whole set, named "<stage>/...", with the weights of `checkpoint`, which the
  /// model then keeps; "": with the present ones, or their averages. Throws: what loading and the
  /// task throw.
  Metrics evaluate(data::DataLoader& loader,
                   const std::string& stage,
                   const std::string& checkpoint = "");
  /// Writes a checkpoint of the present state and waits for it. Throws: as AtomicFile.
  void save(const std::string& path);

  /// The signal that ended fit(), in whichever process, or 0.
  int signal() const;
  /// The times of the training batches so far.
  const data::Timing& timing() const;

 private:
  std::unique_ptr<Training> training_;
};

}  // namespace cytra::training
