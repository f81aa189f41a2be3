#pragma once
#include <functional>
#include <map>
#include <string>

#include "base/tensor_fwd.h"

namespace cytra::perf {

using Forward = std::function<Tensor(const Tensor&)>;

/// Traces `forward` on `example`, freezes its weights into the graph and optimises it for inference
/// (oneDNN prepacking and fusion on a CPU). The result takes inputs of the example's shape. The
/// weights must not require gradients.
Forward compile(const Forward& forward, const Tensor& example);

/// The same, not optimised for one machine or shape, as the bytes of a TorchScript archive that
/// torch.jit.load() reads; `files` become its extra files. It takes the shapes that `forward`
/// takes, provided that computes nothing from a shape itself.
std::string to_torchscript(const Forward& forward,
                           const Tensor& example,
                           const std::map<std::string, std::string>& files);
Forward from_torchscript(const std::string& bytes);

}  // namespace cytra::perf
