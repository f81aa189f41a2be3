#pragma once
// What `train` tells its loggers, and the user at the end.
#include <memory>
#include <string>
#include <vector>

#include "cli/program.h"
#include "training/callback.h"

namespace cytra::app {

using Loggers = std::vector<std::shared_ptr<training::Logger>>;

void open_loggers(const Loggers& loggers,
                  const cli::Run& run,
                  const std::string& folder,
                  int64_t step,
                  const std::string& device);
void close_loggers(const Loggers& loggers,
                   const training::TrainState& state,
                   const training::Metrics& results,
                   const std::string& outcome);

/// The metric that decides which checkpoint is best.
std::string best_metric(const cli::Run& run);

/// Results, and the commands to go on with.
void report(const cli::Run& run,
            const training::TrainState& state,
            const training::Metrics& tested,
            const std::string& folder,
            double seconds);

}  // namespace cytra::app
