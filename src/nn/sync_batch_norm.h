#pragma once
#include <functional>

#include <ATen/core/Tensor.h>

namespace cytra::nn {

struct Model;

/// Makes the batch norms of `model` normalise training batches by the mean and variance of all
/// processes. `sum` adds a tensor (float64) up over the processes, in place; empty: each process
/// uses its own. Returns their number. Throws: ConfigError for one that is not of Cytra's blocks.
int64_t sync_batch_norms(Model& model, const std::function<void(const at::Tensor&)>& sum);

}  // namespace cytra::nn
