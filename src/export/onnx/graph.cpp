#include "export/onnx/graph.h"

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
  const bool is_whole = at::isIntegralType(tensor.scalar_type(), true);
  std::string name = fmt::format("weight_{}", count_++);
  const at::Tensor stored = is_whole                              ? tensor.to(at::kLong)
                            : tensor.scalar_type() == at::kDouble ? tensor.to(at::kFloat)
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
  return found == channels_.end() ? 0 : found->second;
}

}  // namespace cytra::exporting::onnx
