#pragma once
// A training as the user has it, for some seconds, with a clock on it.
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "app/optimize/bottleneck.h"
#include "app/setup/train_config.h"
#include "base/signal_watch.h"
#include "data/cache.h"
#include "perf/measure.h"
#include "perf/operator_profile.h"

namespace cytra::app {

/// The user's experiment in a folder of its own that goes when this does, whatever ends the
/// program's work. A signal ends the program at once.
class Trials {
 public:
  /// Throws: ConfigError, and as make_run_folder().
  Trials(cli::Run run, const TrainConfig& config);
  ~Trials();
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;

  struct Measured {
    StepTimes times;
    std::vector<double> losses;  // of the first steps
    Facts facts;
    perf::OperatorRows operators;  // of some batches after those; empty unless asked for
    double profiled_batches = 0;
    double validation_s = 0;  // of a batch
    int64_t peak_bytes = 0;
  };
  struct How {
    double seconds = 10;   // of the timed part
    bool explains = true;  // operators, transforms, what a batch of any size takes
  };
  /// Throws: ConfigError and DataError as a training; Interrupted after a signal; MemoryError and
  /// what torch throws where memory runs out.
  Measured measure(const Changes& changes, const How& how) const;
  const cli::Run& run() const { return run_; }
  c10::Device device() const { return device_; }

  /// The value that the experiment has; null where there is no such key.
  config::Node value(const std::string& key) const;

 private:
  cli::Run run_;  // with the folder
  std::string folder_;
  c10::Device device_;
  SignalWatch watch_;
};

/// What a change of `before` brought.
struct Tried {
  perf::Verdict verdict;       // of the time of an image
  double loss_difference = 0;  // of the mean of the first steps, relative; 0: of other batches
  Trials::Measured measured;   // the last run with it
};
enum class Aim { training, validation };  // whose time is compared

/// Trainings of `before` and `after` in turn (perf/measure.h), each of `seconds`. None: `after`
/// does not fit into memory. Throws: as measure().
std::optional<Tried> try_changes(const Trials& trials,
                                 const Changes& before,
                                 const Changes& after,
                                 double seconds,
                                 Aim aim = Aim::training);

/// The configuration of `run` with changes, and in `changed` the run that has it. Throws:
/// ConfigError.
TrainConfig with_changes(const cli::Run& run, const Changes& changes, cli::Run& changed);

/// Changes as overrides: "data.num_workers=4 callbacks.saving=null"; ++ where the key is new.
std::string text_of(const cli::Run& run, const Changes& changes);
/// The command that trains the experiment of `optimize` with changes, ready to paste.
/// `performance`: the choice in the group of that name; "": as it is.
std::string train_command(const cli::Run& run,
                          const Changes& changes,
                          const std::string& performance = "");
/// The overrides of the experiment, without those of `optimize` itself.
std::vector<std::string> experiment_overrides(const cli::Run& run,
                                              const std::string& performance = "");

}  // namespace cytra::app
