#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "training/task.h"

namespace cytra::training {

/// Where a training stands: plain data, all of it in every checkpoint.
struct TrainState {
  int64_t epoch = 0;  // epochs finished
  int64_t batch = 0;  // batches done in the epoch under way
  int64_t step = 0;   // optimizer steps done
  Metrics metrics;    // the newest value of everything logged
  double best_score = 0;
  std::string best_path;  // empty: no best checkpoint yet
};

/// All that a callback may ask for.
struct Control {
  bool stop = false;
  std::vector<std::string> save_to;  // checkpoints to write now
};

/// Never sees the Trainer. Registered by class name, listed under `callbacks`.
struct Callback {
  static constexpr const char* kKind = "callback";
  virtual ~Callback() = default;
  virtual void on_fit_start(const TrainState&) {}
  virtual void on_step_end(TrainState&, Control&) {}
  virtual void on_validation_end(TrainState&, Control&) {}
  virtual void on_epoch_end(TrainState&, Control&) {}
  virtual void on_fit_end(const TrainState&) {}
};

/// Takes the numbers of a run. Registered by class name, listed under `logger`.
struct Logger {
  static constexpr const char* kKind = "logger";
  virtual ~Logger() = default;
  virtual void log(const Metrics& metrics, int64_t epoch, int64_t step) = 0;
};

}  // namespace cytra::training
