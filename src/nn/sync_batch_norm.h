#pragma once
#include <functional>

#include <ATen/core/Tensor.h>

namespace cytra::nn {

struct Model;

/// From now on the batch norms of `model` normalise a training's batches by the mean and variance
/// of all processes; `sum` adds a tensor (float64) up over them, in place; empty: each by itself.
/// Returns their number. Throws: ConfigError for one that is not of Cytra's blocks.
int64_t sync_batch_norms(Model& model, const std::function<void(const at::Tensor&)>& sum);

}  // namespace cytra::nn
