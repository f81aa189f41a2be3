#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "config/node.h"

namespace cytra::exporting {

/// A model, of one output or several.
using Forward = std::function<std::vector<Tensor>(const Tensor&)>;

/// Sets for how many shapes of its inputs a traced model gets fused kernels, and whether those are
/// for a shape alone: [[STATIC, 2], [DYNAMIC, 10]], as torch.jit.set_fusion_strategy, for the whole
/// process; null: it stays. Throws: ConfigError that names the key.
void set_fusion_strategy(const config::Node& node);
/// Checks it alone. Throws: as set_fusion_strategy().
void expect_fusion_strategy(const config::Node& node);

/// Traces `forward` on `example`, freezes its weights into the graph (batch norm folded into its
/// convolution, no dropout) and optimises it for inference (oneDNN prepacking and fusion on a CPU).
/// The result takes inputs of the example's shape, on several threads at once. The weights must not
/// require gradients.
Forward compile(const Forward& forward, const Tensor& example);

/// Traces `forward` without optimising it for one machine or shape. Returns the bytes of a
/// TorchScript archive that torch.jit.load() reads; `files` become its extra files. The module
/// takes the shapes that `forward` takes, provided that `forward` computes nothing from a shape
/// itself. Several outputs become a tuple.
std::string to_torchscript(const Forward& forward,
                           const Tensor& example,
                           const std::map<std::string, std::string>& files);
/// The archive with linear layers in 8 bits, whose inputs are rounded by the range of each call: a
/// quarter of their size, for CPUs. Throws: ConfigError where the model has none.
std::string to_int8_torchscript(const Forward& forward,
                                const Tensor& example,
                                const std::map<std::string, std::string>& files);
/// Loads a TorchScript module; its outputs may be a tensor, or a tuple or list of tensors. Throws:
/// DataError for anything else.
Forward from_torchscript(const std::string& bytes);

}  // namespace cytra::exporting
