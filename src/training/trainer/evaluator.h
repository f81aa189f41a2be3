#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "training/logger.h"
#include "training/precision.h"

namespace cytra::data {
struct Batch;
class DeviceFeed;
}  // namespace cytra::data

namespace cytra::training {

struct Callback;
class Processes;
class StopCondition;
struct Task;
struct TrainerOptions;
struct TrainState;

/// Measures a task's metrics over a set, in evaluation mode and without gradients; the model is
/// left as it was.
class Evaluator {
 public:
  /// Keeps references to all.
  Evaluator(const TrainerOptions& options,
            Task& task,
            const std::vector<std::shared_ptr<Callback>>& callbacks,
            const TrainState& state,
            Processes& processes,
            StopCondition& stop,
            c10::Device device);

  /// The weights that are evaluated: those in the model, or what callbacks put in their place
  /// (their averages).
  enum class Weights { present, swapped_in };
  /// What else is to be done; empty: nothing.
  struct Hooks {
    std::function<void(const data::Batch& batch, int64_t done)> after_batch;
    std::function<void()> before_first_batch;  // with the weights in their place
    std::function<bool()> is_over;             // asked before each batch: breaks off
    report::Findings* findings = nullptr;      // gets what a report shows
  };
  /// The metrics of the first `batches` of the set, over all processes, named "<stage>/...". After
  /// a signal, or once it is over, of those until then.
  Metrics evaluate(data::DeviceFeed& feed,
                   int64_t batches,
                   const std::string& stage,
                   Weights weights,
                   const Hooks& hooks);

 private:
  Task& task_;
  const std::vector<std::shared_ptr<Callback>>& callbacks_;
  const TrainState& state_;
  Processes& processes_;
  StopCondition& stop_;
  c10::Device device_;
  Precision precision_;
  bool uses_inference_mode_;
};

}  // namespace cytra::training
