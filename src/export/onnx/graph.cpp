#include "export/onnx/graph.h"

#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>

namespace cytra::exporting::onnx {

namespace jit = torch::jit;

std::string Graph::add(const std::string& type,
                       const std::vector<std::string>& inputs,
                       const Attributes& attributes) {
  std::string output = fmt::format("{}_{}", type, count_++);
  nodes.push_back(node_proto(type, inputs, output, attributes));
  return output;
}

std::string Graph::weight(const at::Tensor& tensor) {
  const bool is_whole = at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
  std::string name = fmt::format("weight_{}", count_++);
  const at::Tensor stored =
      is_whole ? tensor.to(at::kLong)
      : tensor.scalar_type() == at::kDouble || tensor.scalar_type() == at::kBool
          ? tensor.to(at::kFloat)
          : tensor;
  initializers.push_back(tensor_proto(name, stored));
  return name;
}

std::string Graph::integers(const std::vector<int64_t>& values) {
  return weight(at::tensor(values, at::kLong));
}

std::string Graph::name(const Value* value) {
  const auto found = names_.find(value);
  if (found != names_.end()) return found->second;
  const std::optional<c10::IValue> known = constant(value);
  if (!known) throw Unsupported{"of a value that has no tensor"};
  std::string name;
  if (known->isTensor()) {
    name = weight(known->toTensor());
  } else if (known->isInt()) {
    name = weight(at::scalar_tensor(known->toInt(), at::kLong));
  } else if (known->isDouble()) {
    name = weight(at::scalar_tensor(known->toDouble(), at::kFloat));
  } else {
    throw Unsupported{"of a " + known->tagKind()};
  }
  set(value, name);
  return name;
}

std::optional<c10::IValue> Graph::constant(const Value* value) {
  if (auto known = jit::toIValue(value)) return known;
  const Node* node = value->node();
  if (node->kind() == c10::prim::ListConstruct) {
    c10::impl::GenericList list(value->type()->expectRef<c10::ListType>().getElementType());
    for (const Value* item : node->inputs()) {
      const auto known = constant(item);
      if (!known) return std::nullopt;
      list.push_back(*known);
    }
    return c10::IValue(std::move(list));
  }
  return std::nullopt;
}

std::string Graph::shape(const Value* list) {
  if (const auto known = constant(list)) {
    std::vector<int64_t> values;
    for (const c10::IValue& value : known->toListRef()) values.push_back(value.toInt());
    return integers(values);
  }
  if (names_.count(list) != 0) return names_.at(list);
  if (list->node()->kind() != c10::prim::ListConstruct)
    throw Unsupported{"with a shape that is not a list"};
  std::vector<std::string> parts;
  for (const Value* item : list->node()->inputs())
    parts.push_back(add("Reshape", {name(item), integers({1})}));
  return add("Concat", parts, Attributes().add("axis", int64_t{0}));
}

int64_t Graph::channels(const Value* value) const {
  const auto found = channels_.find(value);
  if (const auto own = sizes_.find(value); own != sizes_.end() && own->second.size() > 1)
    return own->second[1];
  return found == channels_.end() ? 0 : found->second;
}

std::string own_name_of(const Node& node) {
  std::string name = node.kind().toUnqualString();
  if (name.size() > 1 && name.back() == '_') name.pop_back();  // in place
  return name;
}

bool translate(Graph& graph, const Node& node) {
  const c10::Symbol kind = node.kind();
  if (kind == c10::prim::Constant || kind == c10::prim::ListConstruct ||
      kind == c10::prim::TupleConstruct || kind == c10::prim::DictConstruct)
    return true;  // converted where they are used
  const std::string name = own_name_of(node);
  const bool is_sized = graph.has_sizes();
  if (is_sized && (name == "chunk" || name == "split")) return true;  // their parts are named
  if (is_sized && kind == c10::prim::ListUnpack) {
    unpack(graph, node);
    return true;
  }
  static const Rules none;
  for (const Rules* rules : {is_sized ? &token_rules() : &none, &layer_rules(), &value_rules()}) {
    const auto rule = rules->find(name);
    if (rule == rules->end()) continue;
    graph.set(node.output(), rule->second(graph, node));
    static const std::set<std::string> moving{"cat",
                                              "linear",
                                              "matmul",
                                              "bmm",
                                              "reshape",
                                              "view",
                                              "flatten",
                                              "permute",
                                              "unsqueeze",
                                              "squeeze",
                                              "slice",
                                              "select",
                                              "size",
                                              "mean"};
    if (graph.channels(node.output()) == 0 && moving.count(name) == 0)
      graph.set_channels(node.output(), graph.channels(node.input(0)));
    if (std::string(kind.toUnqualString()).back() == '_')
      graph.set(node.input(0), graph.name(node.output()));  // later readers get the result
    return true;
  }
  return false;
}

}  // namespace cytra::exporting::onnx
