#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "config/node.h"
#include "data/batch.h"
#include "data/timing.h"
#include "training/callback.h"
#include "training/checkpoint_writer.h"
#include "training/grad_scaler.h"
#include "training/trainer_options.h"

namespace cytra::data {
class DataLoader;
class DeviceFeed;
}  // namespace cytra::data

namespace cytra::training {

struct Feeds;
class GradientAverage;
class Processes;
struct Group;
struct Outcome;
struct Pending;

/// Trains a task: batches, steps, validations, and nothing of what is learned. What else happens
/// during a training is a callback's business, where numbers go a logger's.
/// Follows lightning.Trainer in names and meaning; where it differs, docs/training.md says so.
class Trainer {
 public:
  /// The model is on its device already. An optimizer that is not attached yet is attached to all
  /// of its parameters. `config` goes into every
  /// checkpoint. `processes`: that train together, connected already; null: this one alone. Then
  /// all of them make the same calls, but loggers are for the first alone, which writes all files.
  Trainer(TrainerOptions options,
          Task& task,
          Optimizer& optimizer,
          Scheduler& scheduler,
          std::vector<std::shared_ptr<Callback>> callbacks = {},
          std::vector<std::shared_ptr<Logger>> loggers = {},
          config::Node config = config::Node::make_map(),
          Processes* processes = nullptr);
  ~Trainer();

  /// Takes up a training where a checkpoint left it. Throws: as load_checkpoint().
  void resume(const std::string& path, bool strict = true);
  /// Where the next batch comes from; may be changed before fit().
  TrainState& state() { return state_; }

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
  /// Of the training batches so far.
  const data::Timing& timing() const { return timing_; }

 private:
  /// What may end a training early, as all processes know it.
  struct Ending {
    int signal = 0;
    bool is_late = false, is_asked = false;
  };
  Ending own_ending() const;
  bool agree(bool saves = false);
  void plan(data::DataLoader& train, data::DataLoader& valid);
  void run(Feeds& feeds);
  void sanity_check(Feeds& feeds);
  void train_epoch(Feeds& feeds);
  void train_batch(data::Batch batch, Group& group);
  void apply(Group& group);
  void settle();
  void on_nonfinite(const Pending& step, const Outcome& outcome);
  void end_epoch(Feeds& feeds);
  bool is_validation_due() const;
  void validate(Feeds& feeds);
  Metrics run_validation(data::DeviceFeed& feed,
                         int64_t batches,
                         const std::string& stage,
                         bool has_callbacks,
                         bool is_as_it_is = false);
  void on_exception(const std::string& what);
  bool should_stop() const;
  double seconds() const;
  template <class Hook>
  void call(const char* name, Hook hook);
  void carry_out();
  void log(const Metrics& metrics, const Metrics& times = {});
  void log_step(const Pending& step, const Outcome& outcome);
  void write();
  Parts parts();

  TrainerOptions options_;
  std::unique_ptr<Processes> alone_;
  Processes& processes_;
  std::unique_ptr<GradientAverage> average_;  // null: alone
  Ending ending_;
  bool has_validation_ = false;  // of images, in any process
  Task& task_;
  Optimizer& optimizer_;
  Scheduler& scheduler_;
  std::vector<std::shared_ptr<Callback>> callbacks_;
  std::vector<std::shared_ptr<Logger>> loggers_;
  config::Node config_;
  Precision precision_;
  c10::Device device_;
  GradScaler scaler_;
  CheckpointWriter writer_;
  TrainState state_;
  Context context_;
  std::unique_ptr<Pending> pending_;  // the newest step, whose numbers may be on their way
  std::unique_ptr<Progress> progress_;
  std::string note_;  // what the progress line says, as of the last logging
  data::Timing timing_, logged_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double seconds_before_ = 0;
  int64_t skipped_in_a_row_ = 0;
  int64_t edge_ = 0;         // state_.batch as of the newest step's edge
  int64_t edge_before_ = 0;  // ... and of the one before, in this epoch
  bool stop_ = false;
};

}  // namespace cytra::training
