#pragma once
// The first batches of a training, for `train --check-data`.
#include "app/setup/setup.h"
#include "data/survey.h"

namespace cytra::app {

/// A sample by itself through transforms and the task's last step.
data::Trial trial_of(const Setup& setup);
/// Loads the first batches of training and validation as `train` does, through transforms and
/// collation, and gives a few of them to the task. What fails and is not among survey.problems yet
/// is added there; what the batches hold, to survey.notes.
void try_batches(const Setup& setup, data::Survey& survey);

}  // namespace cytra::app
