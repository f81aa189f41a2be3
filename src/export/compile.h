#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"

namespace cytra::exporting {

/// A model of one output; one of several.
using Network = std::function<Tensor(const Tensor&)>;
using Forward = std::function<std::vector<Tensor>(const Tensor&)>;

/// Traces `forward` on `example`, freezes its weights into the graph (batch norm folded into its
/// convolution, no dropout) and optimises it for inference (oneDNN prepacking and fusion on a CPU).
/// The result takes inputs of the example's shape, on several threads at once. The weights must not
/// require gradients.
Network compile(const Network& forward, const Tensor& example);
Forward compile(const Forward& forward, const Tensor& example);

/// Traces `forward` without optimising it for one machine or shape. Returns the bytes of a
/// TorchScript archive that torch.jit.load() reads; `files` become its extra files. The module
/// takes the shapes that `forward` takes, provided that `forward` computes nothing from a shape
/// itself. Several outputs become a tuple.
std::string to_torchscript(const Network& forward,
                           const Tensor& example,
                           const std::map<std::string, std::string>& files);
std::string to_torchscript(const Forward& forward,
                           const Tensor& example,
                           const std::map<std::string, std::string>& files);
Network from_torchscript(const std::string& bytes);
/// Loads a TorchScript module; its outputs may be a tensor, or a tuple or list of tensors. Throws:
/// DataError for anything else.
Forward outputs_of_torchscript(const std::string& bytes);

}  // namespace cytra::exporting
