#pragma once
// How an operator of ATen, by its name, becomes nodes of ONNX.
#include <string>
#include <unordered_map>

#include "export/onnx/graph.h"

namespace cytra::exporting::onnx {

using Rule = void (*)(Graph& graph, const Node& node);
using Rules = std::unordered_map<std::string, Rule>;

const Rules& layer_rules();
const Rules& value_rules();

/// Adds what an operator of ATen does; false when there is no rule for it. Throws: Unsupported.
bool translate(Graph& graph, const Node& node);

/// "relu" of aten::relu_, too, which works in place.
std::string own_name_of(const Node& node);

}  // namespace cytra::exporting::onnx
