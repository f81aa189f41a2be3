#pragma once
// Averages of several predictions: models, and one model's of the turned image.
#include <vector>

#include "inference/trained_model.h"

namespace cytra::inference {

/// The mean of what the members make of the same windows, output by output, in float32, summed as
/// they come. Throws: DataError where their outputs' shapes differ.
Forward mean_of(std::vector<Forward> members);

/// The same as one model: sides of windows are multiples of all divisors, the rest is the first's.
LoadedModel mean_of(std::vector<LoadedModel> models);

}  // namespace cytra::inference
