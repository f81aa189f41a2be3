#pragma once
#include "data/loader/batch.h"
#include "training/precision.h"
#include "training/task.h"

namespace cytra::training {

/// Tries a step with the first image of a batch, as an epoch's last batch may have no other, where
/// the model has batch norms, which may not take that: it shows now, not after an epoch. Nothing
/// is changed. Throws: what the step throws.
void try_one_image(Task& task, data::Batch batch, const Precision& precision);

}  // namespace cytra::training
