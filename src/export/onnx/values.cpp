// Part of export/onnx/graph.h: activations, arithmetic and shapes.
#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include "export/onnx/graph.h"

namespace cytra::exporting::onnx {
namespace {

using Sizes = std::vector<int64_t>;

std::string first(Graph& graph, const Node& node) {
  return graph.name(node.input(0));
}

/// The operators of one input, one output, and no arguments.
constexpr std::pair<const char*, const char*> kUnary[] = {{"relu", "Relu"},
                                                          {"sigmoid", "Sigmoid"},
                                                          {"tanh", "Tanh"},
                                                          {"exp", "Exp"},
                                                          {"log", "Log"},
                                                          {"sqrt", "Sqrt"},
                                                          {"neg", "Neg"},
                                                          {"abs", "Abs"},
                                                          {"erf", "Erf"},
                                                          {"reciprocal", "Reciprocal"},
                                                          {"floor", "Floor"},
                                                          {"hardswish", "HardSwish"}};
/// Operations of two tensors or numbers.
constexpr std::pair<const char*, const char*> kArithmetic[] = {{"add", "Add"},
                                                               {"sub", "Sub"},
                                                               {"mul", "Mul"},
                                                               {"div", "Div"},
                                                               {"floordiv", "Div"},
                                                               {"pow", "Pow"},
                                                               {"maximum", "Max"},
                                                               {"minimum", "Min"}};

std::string type_in(const auto& types, const std::string& name) {
  return std::find_if(
             std::begin(types), std::end(types), [&](const auto& one) { return one.first == name; })
      ->second;
}

std::string unary(Graph& graph, const Node& node) {
  return graph.add(type_in(kUnary, own_name_of(node)), {first(graph, node)});
}

double number_at(const Node& node, std::size_t input) {
  const auto value = Graph::constant(node.input(input));
  if (!value || !value->isScalar()) throw Unsupported{"with an argument that is not a number"};
  return value->toScalar().toDouble();
}

std::string leaky_relu(Graph& graph, const Node& node) {
  return graph.add(
      "LeakyRelu", {first(graph, node)}, Attributes().add("alpha", number_at(node, 1)));
}

std::string elu(Graph& graph, const Node& node) {
  if (number_at(node, 2) != 1 || number_at(node, 3) != 1) throw Unsupported{"with scales"};
  return graph.add("Elu", {first(graph, node)}, Attributes().add("alpha", number_at(node, 1)));
}

std::string prelu(Graph& graph, const Node& node) {
  const auto slope = Graph::constant(node.input(1));
  if (!slope || !slope->isTensor()) throw Unsupported{"with a slope that is computed"};
  Sizes shape(static_cast<std::size_t>(graph.spatial_dims) + 1, 1);
  shape[0] = -1;
  return graph.add("PRelu", {first(graph, node), graph.weight(slope->toTensor().reshape(shape))});
}

std::string silu(Graph& graph, const Node& node) {
  const std::string x = first(graph, node);
  return graph.add("Mul", {x, graph.add("Sigmoid", {x})});
}

std::string scalar(Graph& graph, double value) {
  return graph.weight(at::scalar_tensor(value, at::kFloat));
}

std::string gelu(Graph& graph, const Node& node) {
  if (node.inputs().size() > 1 && Graph::get<std::string>(node, 1) != "none")
    throw Unsupported{"approximated"};
  const std::string x = first(graph, node);
  const std::string erf = graph.add("Erf", {graph.add("Mul", {x, scalar(graph, std::sqrt(0.5))})});
  const std::string half = graph.add("Mul", {x, scalar(graph, 0.5)});
  return graph.add("Mul", {half, graph.add("Add", {erf, scalar(graph, 1)})});
}

/// Converts clamping: (x, low, high); relu6 is hardtanh between 0 and 6.
std::string clamp(Graph& graph, const Node& node) {
  std::vector<std::string> inputs{first(graph, node)};
  for (const std::size_t input : {std::size_t{1}, std::size_t{2}})
    inputs.push_back(Graph::is_none(node, input) ? "" : scalar(graph, number_at(node, input)));
  return graph.add("Clip", inputs);
}

std::string softmax(Graph& graph, const Node& node) {
  const bool is_log = own_name_of(node) == "log_softmax";
  return graph.add(is_log ? "LogSoftmax" : "Softmax",
                   {first(graph, node)},
                   Attributes().add("axis", Graph::get<int64_t>(node, 1)));
}

/// Converts arithmetic on tensors and numbers; whole numbers come from shapes.
std::string arithmetic(Graph& graph, const Node& node) {
  const std::string name = own_name_of(node);
  const bool is_tensor = node.output()->type()->isSubtypeOf(*c10::TensorType::get());
  // A number combined with an image has the image's type, except where both come from a shape.
  const auto operand = [&](std::size_t input) {
    const auto known = Graph::constant(node.input(input));
    const auto other = Graph::constant(node.input(1 - input));
    const bool beside_tensor =
        node.input(1 - input)->type()->isSubtypeOf(*c10::TensorType::get()) && !other &&
        graph.channels(node.input(1 - input)) > 0;
    return known && known->isScalar() && is_tensor && beside_tensor
               ? scalar(graph, known->toScalar().toDouble())
               : graph.name(node.input(input));
  };
  if (name == "div" && node.inputs().size() > 2) throw Unsupported{"with rounding"};
  std::string right = operand(1);
  if ((name == "add" || name == "sub") && node.inputs().size() > 2 && number_at(node, 2) != 1)
    right = graph.add("Mul", {right, scalar(graph, number_at(node, 2))});
  if (graph.channels(node.input(0)) == 0)
    graph.set_channels(node.output(), graph.channels(node.input(1)));
  return graph.add(type_in(kArithmetic, name), {operand(0), right});
}

std::string cat(Graph& graph, const Node& node) {
  const Node* list = node.input(0)->node();
  if (list->kind() != c10::prim::ListConstruct) throw Unsupported{"of a list that is computed"};
  const auto dim = Graph::get<int64_t>(node, 1);
  std::vector<std::string> parts;
  int64_t channels = 0;
  bool is_known = true;
  for (const Value* part : list->inputs()) {
    parts.push_back(graph.name(part));
    const int64_t own = graph.channels(part);
    is_known = is_known && own > 0;
    channels = dim == 1 ? channels + own : own;
  }
  if (is_known) graph.set_channels(node.output(), channels);
  return graph.add("Concat", parts, Attributes().add("axis", dim));
}

std::string linear(Graph& graph, const Node& node) {
  const auto weight = Graph::constant(node.input(1));
  if (!weight || !weight->isTensor()) throw Unsupported{"with weights that are computed"};
  std::string result =
      graph.add("MatMul", {first(graph, node), graph.weight(weight->toTensor().t().contiguous())});
  if (!Graph::is_none(node, 2)) result = graph.add("Add", {result, graph.name(node.input(2))});
  return result;
}

std::string matmul(Graph& graph, const Node& node) {
  return graph.add("MatMul", {first(graph, node), graph.name(node.input(1))});
}

std::string reshape(Graph& graph, const Node& node) {
  return graph.add("Reshape",
                   {first(graph, node), graph.shape(node.input(1))},
                   Attributes().add("allowzero", int64_t{1}));
}

/// Converts flatten, which merges the dimensions from `start` to the end; they may be in the
/// middle of a shape.
std::string flatten(Graph& graph, const Node& node) {
  const auto start = Graph::get<int64_t>(node, 1), end = Graph::get<int64_t>(node, 2);
  if (start < 0 || end != -1) throw Unsupported{"but for the last dimensions"};
  Sizes shape(static_cast<std::size_t>(start), 0);
  shape.push_back(-1);
  return graph.add("Reshape", {first(graph, node), graph.integers(shape)});
}

std::string permute(Graph& graph, const Node& node) {
  return graph.add(
      "Transpose", {first(graph, node)}, Attributes().add("perm", Graph::get<Sizes>(node, 1)));
}

std::string change_axes(Graph& graph, const Node& node) {
  const bool adds = own_name_of(node) == "unsqueeze";
  return graph.add(adds ? "Unsqueeze" : "Squeeze",
                   {first(graph, node), graph.integers({Graph::get<int64_t>(node, 1)})});
}

std::string slice(Graph& graph, const Node& node) {
  const auto bound = [&](std::size_t input, int64_t otherwise) {
    return Graph::is_none(node, input)
               ? graph.integers({otherwise})
               : graph.add("Reshape", {graph.name(node.input(input)), graph.integers({1})});
  };
  if (Graph::get<int64_t>(node, 1) != 1)
    graph.set_channels(node.output(), graph.channels(node.input(0)));
  return graph.add("Slice",
                   {first(graph, node),
                    bound(2, 0),
                    bound(3, INT64_MAX),
                    graph.integers({Graph::get<int64_t>(node, 1)}),
                    bound(4, 1)});
}

std::string select(Graph& graph, const Node& node) {
  return graph.add("Gather",
                   {first(graph, node), graph.name(node.input(2))},
                   Attributes().add("axis", Graph::get<int64_t>(node, 1)));
}

std::string size(Graph& graph, const Node& node) {
  const std::string shape = graph.add("Shape", {first(graph, node)});
  return node.inputs().size() == 1 ? shape
                                   : graph.add("Gather",
                                               {shape, graph.name(node.input(1))},
                                               Attributes().add("axis", int64_t{0}));
}

std::string mean(Graph& graph, const Node& node) {
  if (node.inputs().size() != 4) throw Unsupported{"over all values"};
  return graph.add("ReduceMean",
                   {first(graph, node)},
                   Attributes()
                       .add("axes", Graph::get<Sizes>(node, 1))
                       .add("keepdims", int64_t{Graph::get<bool>(node, 2)}));
}

}  // namespace

const Rules& value_rules() {
  static const Rules rules = [] {
    Rules all{{"leaky_relu", leaky_relu},
              {"elu", elu},
              {"prelu", prelu},
              {"silu", silu},
              {"gelu", gelu},
              {"cat", cat},
              {"linear", linear},
              {"flatten", flatten},
              {"permute", permute},
              {"slice", slice},
              {"select", select},
              {"size", size},
              {"mean", mean}};
    for (const auto& [name, type] : kUnary) all[name] = unary;
    for (const auto& [name, type] : kArithmetic) all[name] = arithmetic;
    for (const char* name : {"clamp", "hardtanh"}) all[name] = clamp;
    for (const char* name : {"softmax", "log_softmax"}) all[name] = softmax;
    for (const char* name : {"matmul", "bmm"}) all[name] = matmul;
    for (const char* name : {"reshape", "view"}) all[name] = reshape;
    for (const char* name : {"unsqueeze", "squeeze"}) all[name] = change_axes;
    for (const char* name : {"dropout", "feature_dropout", "alpha_dropout"}) all[name] = first;
    for (const char* name : {"contiguous", "clone", "detach", "alias", "to"}) all[name] = first;
    for (const char* name : {"Int", "ScalarImplicit", "NumToTensor"}) all[name] = first;
    return all;
  }();
  return rules;
}

}  // namespace cytra::exporting::onnx
