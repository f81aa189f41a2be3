#pragma once
// Include only from .cpp files, as nn/model.h.
#include <cstdint>

namespace cytra::nn {

struct Model;

/// Prepares a model in evaluation mode for inference alone: a batch norm behind a convolution, also
/// a transposed one, becomes part of its weights, as it is then a fixed map of each channel; the
/// activation behind it works in the convolution's memory. Outputs change by
/// rounding alone (1e-6 of their size). Instance, group and layer norms take their statistics from
/// the image, and stay. So does a norm whose convolution has other readers: which these are is seen
/// in a pass over a small image, and a second one checks the outputs. Weights get new values, and
/// convolutions without a bias get one: a model that is to be trained or saved must not be folded.
/// Returns the number of norms.
int64_t fold(Model& model);

}  // namespace cytra::nn
