#pragma once

#include "base/stopwatch.h"

namespace cytra::training {

class Processes;
struct TrainerOptions;
struct TrainState;

/// What ends a training before its last epoch: max_steps, max_time, a callback, or a signal
/// (base/signals.h). Processes that train together end after the same step: a reason that one of
/// them knows counts once they have agreed.
class StopCondition {
 public:
  /// Keeps references to both.
  StopCondition(const TrainerOptions& options, Processes& processes);

  /// Starts the clock of max_time, with the seconds that were spent before the checkpoint.
  void start_clock(double seconds_before);
  double seconds() const;  // spent on the training so far
  /// Keeps some seconds of max_time, at most half of it, for the validation at the end.
  void keep_for_validation(double seconds) { kept_ = seconds; }
  /// Whether max_time is over, in this process.
  bool is_late() const;
  /// Asks to stop, for a callback; it is done after min_epochs and min_steps.
  void ask() { is_asked_ = true; }

  /// The processes exchange what they know; all call it at the same place of the loop. Returns
  /// whether any of them `wants_to_save`: then all of them do.
  bool agree(bool wants_to_save = false);

  bool is_met(const TrainState& state) const;
  /// The signal that ends the training, in whichever process, or 0.
  int signal() const;
  /// Whether any process got a signal, also before they could agree: long work may break off.
  bool is_interrupted() const;

 private:
  struct Reasons {
    int signal = 0;
    bool is_late = false, is_asked = false;
  };
  Reasons own_reasons() const;

  const TrainerOptions& options_;
  Processes& processes_;
  bool is_asked_ = false;  // by a callback of this process
  Reasons agreed_;         // of several processes
  Stopwatch stopwatch_;
  double seconds_before_ = 0, kept_ = 0;
};

}  // namespace cytra::training
