#pragma once
// The work of `predict` that a model's results ask for.
#include <memory>
#include <string>
#include <vector>

#include "app/predict/config.h"
#include "pipelines/predict/work.h"

namespace cytra::app {

/// The work for an output of the model.
struct HeadWork {
  std::string head;  // "": the model's only output
  std::unique_ptr<pipelines::PredictWork> work;
};
/// Throws: ConfigError for an option that such results have no use for, and what the works throw.
std::vector<HeadWork> works_of(const inference::Subject& subject, const PredictConfig& config);

}  // namespace cytra::app
