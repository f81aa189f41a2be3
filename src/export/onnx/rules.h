#pragma once
// Converts operators of ATen, by their names, to nodes of ONNX.
#include <string>
#include <unordered_map>

#include "export/onnx/graph.h"

namespace cytra::exporting::onnx {

/// Adds nodes for an operator; returns the name of its result.
using Rule = std::string (*)(Graph& graph, const Node& node);
using Rules = std::unordered_map<std::string, Rule>;

const Rules& layer_rules();
const Rules& value_rules();

/// Adds nodes for an operator of ATen; returns false when there is no rule for it. Throws:
/// Unsupported.
bool translate(Graph& graph, const Node& node);

/// The operator's name: "relu" of aten::relu, and of aten::relu_, which works in place.
std::string own_name_of(const Node& node);

}  // namespace cytra::exporting::onnx
