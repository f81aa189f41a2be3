// Part of export/onnx/graph.h: attention and what moves its tokens, in networks of one size: sizes
// are those of a run.
#include <numeric>

#include <ATen/ATen.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "export/onnx/graph.h"

namespace cytra::exporting::onnx {
namespace {

namespace jit = torch::jit;
using Sizes = std::vector<int64_t>;

int64_t axis_at(Graph& graph, const Node& node, std::size_t input) {
  const auto axis = Graph::get<int64_t>(node, input);
  return axis < 0 ? axis + static_cast<int64_t>(graph.sizes(node.input(0)).size()) : axis;
}

std::string part(Graph& graph, const std::string& x, int64_t axis, int64_t begin, int64_t end) {
  return graph.add("Slice",
                   {x, graph.integers({begin}), graph.integers({end}), graph.integers({axis})});
}

std::string reshaped(Graph& graph, const Node& node) {
  return graph.add("Reshape",
                   {graph.name(node.input(0)), graph.integers(graph.sizes(node.output()))});
}

/// Moves axes as the operation does with a tensor whose sides are 1, 2, 3 ...
std::string with_moved_axes(Graph& graph, const Node& node) {
  Sizes sides(graph.sizes(node.input(0)).size());
  std::iota(sides.begin(), sides.end(), 1);
  jit::Stack stack{at::empty({1}).expand(sides)};
  for (std::size_t i = 1; i < node.inputs().size(); ++i)
    stack.push_back(Graph::constant(node.input(i)).value());
  node.getOperation()(stack);
  Sizes order = stack.back().toTensor().sizes().vec();
  for (int64_t& axis : order) --axis;
  return graph.add("Transpose", {graph.name(node.input(0))}, Attributes().add("perm", order));
}

std::string narrow(Graph& graph, const Node& node) {
  const auto begin = Graph::get<int64_t>(node, 2), count = Graph::get<int64_t>(node, 3);
  return part(graph, graph.name(node.input(0)), axis_at(graph, node, 1), begin, begin + count);
}

std::string roll(Graph& graph, const Node& node) {
  std::string x = graph.name(node.input(0));
  const auto shifts = Graph::get<Sizes>(node, 1), axes = Graph::get<Sizes>(node, 2);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int64_t side = graph.sizes(node.input(0)).at(static_cast<std::size_t>(axes[i]));
    x = graph.add("Gather",
                  {x, graph.weight(at::arange(side, at::kLong).roll(shifts.at(i)))},
                  Attributes().add("axis", axes[i]));
  }
  return x;
}

std::string expand(Graph& graph, const Node& node) {
  return graph.add("Expand",
                   {graph.name(node.input(0)), graph.integers(graph.sizes(node.output()))});
}

std::string gather(Graph& graph, const Node& node) {
  const bool are_rows = own_name_of(node) == "index_select";
  return graph.add(are_rows ? "Gather" : "GatherElements",
                   {graph.name(node.input(0)), graph.name(node.input(2))},
                   Attributes().add("axis", Graph::get<int64_t>(node, 1)));
}

std::string where(Graph& graph, const Node& node) {
  constexpr int64_t kBool = 9;
  return graph.add("Where",
                   {graph.add("Cast", {graph.name(node.input(0))}, Attributes().add("to", kBool)),
                    graph.name(node.input(1)),
                    graph.name(node.input(2))});
}

/// softmax(q k^T / sqrt(E) + mask) v
std::string attention(Graph& graph, const Node& node) {
  if (Graph::get<double>(node, 4) != 0 || Graph::get<bool>(node, 5))
    throw Unsupported{"with dropout or a causal mask"};
  const auto mask = Graph::constant(node.input(3));
  if (mask && mask->isTensor() && mask->toTensor().scalar_type() == at::kBool)
    throw Unsupported{"with a mask of yes and no"};
  const Sizes& sizes = graph.sizes(node.input(1));
  const auto rank = std::ssize(sizes);
  Sizes order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[sizes.size() - 1], order[sizes.size() - 2]);
  const double scale = Graph::is_none(node, 6) ? 1 / std::sqrt(static_cast<double>(sizes.back()))
                                               : Graph::get<double>(node, 6);
  const std::string query = graph.add(
      "Mul", {graph.name(node.input(0)), graph.weight(at::scalar_tensor(scale, at::kFloat))});
  const std::string key =
      graph.add("Transpose", {graph.name(node.input(1))}, Attributes().add("perm", order));
  std::string product = graph.add("MatMul", {query, key});
  if (!Graph::is_none(node, 3)) product = graph.add("Add", {product, graph.name(node.input(3))});
  return graph.add("MatMul",
                   {graph.add("Softmax", {product}, Attributes().add("axis", rank - 1)),
                    graph.name(node.input(2))});
}

}  // namespace

void Graph::run(const jit::Graph& source, const at::Tensor& image) {
  std::unordered_map<const Value*, c10::IValue> values{{source.inputs().at(1), image}};
  std::unordered_map<const Value*, std::size_t> left;  // readers
  const auto keep = [&](const Value* value, c10::IValue made) {
    if (made.isTensor()) sizes_[value] = made.toTensor().sizes().vec();
    left[value] = value->uses().size();
    values[value] = std::move(made);
  };
  keep(source.inputs().at(1), image);
  for (const Node* node : source.nodes()) {
    if (node->kind() == c10::prim::Constant) continue;
    if (!node->blocks().empty()) return;  // control flow, which has no form here
    jit::Stack stack;
    for (const Value* input : node->inputs()) {
      const auto known = jit::toIValue(input);
      stack.push_back(known ? *known : values.at(input));
      if (!known && --left.at(input) == 0) values.erase(input);
    }
    if (node->kind() == c10::prim::ListConstruct) {
      c10::impl::GenericList list(
          node->output()->type()->expectRef<c10::ListType>().getElementType());
      for (c10::IValue& item : stack) list.push_back(std::move(item));
      stack = {std::move(list)};
    } else if (node->kind() == c10::prim::ListUnpack) {
      stack = c10::IValue(stack.at(0)).toListRef().vec();
    } else if (node->kind() == c10::prim::TupleConstruct ||
               node->kind() == c10::prim::DictConstruct) {
      continue;
    } else {
      node->getOperation()(stack);
    }
    for (std::size_t i = 0; i < node->outputs().size(); ++i) keep(node->output(i), stack.at(i));
  }
}

void unpack(Graph& graph, const Node& node) {
  const Node& list = *node.input(0)->node();
  const std::string x = graph.name(list.input(0));
  const int64_t axis = axis_at(graph, list, 2);
  int64_t begin = 0;
  for (const Value* output : node.outputs()) {
    const int64_t end = begin + graph.sizes(output).at(static_cast<std::size_t>(axis));
    graph.set(output, part(graph, x, axis, begin, end));
    begin = end;
  }
}

const Rules& token_rules() {
  static const Rules rules = [] {
    Rules all{{"narrow", narrow},
              {"roll", roll},
              {"expand", expand},
              {"index_select", gather},
              {"gather", gather},
              {"where", where},
              {"scaled_dot_product_attention", attention}};
    for (const char* name : {"transpose", "movedim", "permute"}) all[name] = with_moved_axes;
    for (const char* name : {"reshape", "view", "flatten", "unflatten", "unsqueeze", "squeeze"})
      all[name] = reshaped;
    return all;
  }();
  return rules;
}

}  // namespace cytra::exporting::onnx
