#pragma once
// The first batches of a training, for `train --check-data`.
#include "config/node.h"
#include "data/survey.h"

namespace cytra::app {

/// Loads the first batches of training and validation as `train` does, through transforms and
/// collation, and gives a few of them to the task. What fails and is not among survey.problems yet
/// is added there; what the batches hold, to survey.notes. Throws: ConfigError for a task that
/// can't be made.
void try_batches(const config::Node& config, const data::DataModule& module, data::Survey& survey);

}  // namespace cytra::app
