#pragma once
// The batch norm of several processes.
#include <functional>

#include <ATen/core/Tensor.h>

#include "ops/norm/norm.h"

namespace cytra::ops {

/// Adds a tensor up over the processes of a training, in place. Shape: (K) float64.
using SumOverProcesses = std::function<void(const at::Tensor& values)>;

/// batch_norm() for a training whose processes have a part of the batch each. It uses the mean and
/// variance of all parts, forward and backward. `sum` is called once in each pass, by every
/// process. Source: Lightning's sync_batchnorm, torch.nn.SyncBatchNorm.
at::Tensor synced_batch_norm(const at::Tensor& x,
                             const at::Tensor& weight,
                             const at::Tensor& bias,
                             const RunningStatistics& running,
                             double eps,
                             const SumOverProcesses& sum,
                             const Activation& activation = {});

}  // namespace cytra::ops
