#pragma once
#include <cstdint>

#include "config/node.h"
#include "training/checkpoint.h"

namespace cytra::training {

struct PendingStep;
class Processes;
struct StepOutcome;
struct TrainerOptions;
struct TrainState;

/// Handles steps whose loss or gradients are not finite; these have changed no weight. They are
/// left out, or end the run (trainer.on_nonfinite); gradients that overflow in 16-mixed are always
/// left out, since the scaler then takes a smaller factor.
class NonfiniteSteps {
 public:
  /// Keeps references to all. `objects`, `config`: for the checkpoint of on_nonfinite=dump.
  NonfiniteSteps(const TrainerOptions& options,
                 const CheckpointedObjects& objects,
                 const config::Node& config,
                 const Processes& processes);
  /// Restarts the count of steps in a row, after a finite one.
  void end_row() { in_a_row_ = 0; }
  /// Counts the step in state.skipped. Throws: DivergedError when the run is to end.
  void leave_out(const PendingStep& step, const StepOutcome& outcome, TrainState& state);

 private:
  std::string dump(const PendingStep& step) const;
  const TrainerOptions& options_;
  const CheckpointedObjects& objects_;
  const config::Node& config_;
  const Processes& processes_;
  int64_t in_a_row_ = 0;
};

}  // namespace cytra::training
