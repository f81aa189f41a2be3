#pragma once
#include <functional>

#include "base/tensor_fwd.h"

namespace cytra::perf {

using Forward = std::function<Tensor(const Tensor&)>;

/// Traces `forward` on `example`, freezes its weights into the graph and optimises it for inference
/// (oneDNN prepacking and fusion on a CPU). The result takes inputs of the example's shape. The
/// weights must not require gradients.
Forward compile(const Forward& forward, const Tensor& example);

}  // namespace cytra::perf
