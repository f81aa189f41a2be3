#pragma once
// Tries the first batches of a training, for `train --check-data`.
#include "app/setup/setup.h"
#include "data/survey/survey.h"

namespace cytra::app {

/// Makes what takes a single sample through the transforms and the task's last step.
data::Trial trial_of(const Setup& setup);
/// Loads the first batches of training and validation as `train` does, through transforms and
/// collation, and gives a few of them to the task. New failures are added to survey.problems, and
/// what the batches hold to survey.notes.
void try_batches(const Setup& setup, data::Survey& survey);

}  // namespace cytra::app
