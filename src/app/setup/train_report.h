#pragma once
// The results that `train` gives its loggers, and the user at the end.
#include <string>

#include "app/setup/setup.h"
#include "cli/program.h"

namespace cytra::app {

void open_loggers(const Loggers& loggers,
                  const cli::Run& run,
                  const std::string& folder,
                  int64_t step,
                  const std::string& device);
void close_loggers(const Loggers& loggers,
                   const training::TrainState& state,
                   const training::Metrics& results,
                   const std::string& outcome);
/// The results of a training: the newest metrics, and the best value of the watched one.
training::Metrics results_of(const training::TrainState& state);

/// Prints the results, and the commands to continue with; `images`: some of the training's, or
/// those that nothing was learned from (held_out.csv, to be scored by `predict`).
void report(const cli::Run& run,
            const TrainConfig& config,
            const training::Task& task,
            const training::TrainState& state,
            const training::Metrics& tested,
            const std::vector<data::Sample>& images,
            bool are_held_out,
            const std::string& folder,
            double seconds);

}  // namespace cytra::app
