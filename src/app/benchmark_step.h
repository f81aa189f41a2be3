#pragma once
// What `benchmark_performance` measures, and how; the training step among it.
#include <functional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "config/node.h"

namespace cytra::app {

struct Times {
  std::vector<double> ms;  // sorted
  double cpu_ms = 0;       // of all threads, per run
  double at_share(double share) const {
    return ms[static_cast<std::size_t>(share * static_cast<double>(ms.size() - 1) + 0.5)];
  }
  double median() const { return at_share(0.5); }
};

Times measure(const std::function<void()>& work,
              int64_t warmup,
              int64_t repeats,
              c10::Device device);

config::Node real(double value);

/// What is measured, and how often.
struct Subject {
  config::Node config;  // of the model: a run's, or an experiment's
  std::string checkpoint;
  c10::Device device = c10::kCPU;
  std::vector<int64_t> shape;
  int64_t warmup = 3, repeats = 10;
};

/// One training step: forward, loss, backward, update; on random images and, where the task has
/// targets, a random mask. In the experiment's `trainer.precision`.
config::Node measure_train_step(const Subject& subject);

}  // namespace cytra::app
