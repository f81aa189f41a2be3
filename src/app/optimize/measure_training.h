#pragma once
// Runs the user's training for some seconds and times it.
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "app/optimize/bottleneck.h"
#include "app/setup/train_config.h"
#include "base/signal_watch.h"
#include "perf/operator_profile.h"

namespace cytra::app {

/// What one run of the training gives.
struct Figures {
  StepTimes times;
  std::vector<double> losses;  // of the first steps
  Facts facts;
  perf::OperatorRows operators;  // of some batches after those; empty unless asked for
  double validation_s = 0;       // of a batch
};

/// Runs the user's experiment in a folder of its own, which is removed with this object, whatever
/// ends the program. A signal ends the program at once.
class Trials {
 public:
  /// Makes the folder. Throws: ConfigError, and as make_run_folder().
  Trials(cli::Run run, const TrainConfig& config);
  ~Trials();
  Trials& operator=(Trials&&) = delete;

  /// Runs the training and times `seconds` of it. `explains`: measures operators, transforms, and
  /// what a batch of any size takes, too. Throws: ConfigError and DataError as a training;
  /// Interrupted after a signal; MemoryError and what torch throws where memory runs out.
  Figures measure(const Changes& changes, double seconds, bool explains = false) const;
  /// The size of data.batch_size=AUTO (training/batch_size.h), but an epoch keeps four batches.
  int64_t best_batch_size(const Changes& changes) const;
  const cli::Run& run() const { return run_; }
  c10::Device device() const { return device_; }

  /// The experiment's value of a key; null where there is no such key.
  config::Node value(const std::string& key) const;

 private:
  cli::Run run_;  // with the folder
  std::string folder_;
  c10::Device device_;
  SignalWatch watch_;
};

/// The configuration of `run` with changes, and in `changed` the run that has it. Throws:
/// ConfigError.
TrainConfig with_changes(const cli::Run& run, const Changes& changes, cli::Run& changed);

}  // namespace cytra::app
