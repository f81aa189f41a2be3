#include "perf/onnx.h"

#include <set>
#include <sstream>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/error.h"
#include "perf/onnx/graph.h"

namespace cytra::perf {
namespace onnx {

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
    throw Unsupported{"with a shape that is no list"};
  std::vector<std::string> parts;
  for (const Value* item : list->node()->inputs())
    parts.push_back(add("Reshape", {name(item), integers({1})}));
  return add("Concat", parts, Attributes().add("axis", int64_t{0}));
}

int64_t Graph::channels(const Value* value) const {
  const auto found = channels_.find(value);
  return found == channels_.end() ? 0 : found->second;
}

namespace {

/// The tensors of a module's result, in their order.
void add_results(const Value* value, std::vector<const Value*>& all) {
  const Node* node = value->node();
  if (node->kind() == c10::prim::TupleConstruct || node->kind() == c10::prim::ListConstruct) {
    for (const Value* part : node->inputs()) add_results(part, all);
  } else if (node->kind() == c10::prim::DictConstruct) {
    for (std::size_t i = 1; i < node->inputs().size(); i += 2) add_results(node->input(i), all);
  } else {
    all.push_back(value);
  }
}

std::shared_ptr<jit::Graph> frozen_graph(const std::string& torchscript) {
  std::istringstream input(torchscript);
  jit::Module module = jit::load(input, c10::kCPU);
  module.eval();
  // A module that is frozen already has no attributes left.
  if (module.named_attributes().size() > 1 || module.hasattr("training"))
    module = jit::freeze(module);
  std::shared_ptr<jit::Graph> graph = module.get_method("forward").graph()->copy();
  jit::Inline(*graph);
  jit::EliminateDeadCode(graph);
  return graph;
}

std::vector<std::string> shape_text(const OnnxShapes& shapes, const std::string& channels) {
  std::vector<std::string> text{shapes.fixed.empty() ? "batch" : "1", channels};
  constexpr const char* kNames[] = {"depth", "height", "width"};
  for (int64_t d = 0; d < shapes.spatial_dims; ++d) {
    text.push_back(shapes.fixed.empty()
                       ? kNames[3 - shapes.spatial_dims + d]
                       : fmt::to_string(shapes.fixed[static_cast<std::size_t>(d)]));
  }
  return text;
}

}  // namespace
}  // namespace onnx

std::string to_onnx(const std::string& torchscript,
                    const OnnxShapes& shapes,
                    const std::map<std::string, std::string>& metadata) {
  const std::shared_ptr<torch::jit::Graph> source = onnx::frozen_graph(torchscript);
  onnx::Graph graph(shapes.spatial_dims);
  const onnx::Value* image = source->inputs().at(1);  // behind `self`
  graph.set(image, "image");
  graph.set_channels(image, shapes.in_channels);
  std::set<std::string> unsupported;
  for (const onnx::Node* node : source->nodes()) {
    try {
      if (!onnx::translate(graph, *node)) unsupported.insert(node->kind().toQualString());
    } catch (const onnx::Unsupported& error) {
      // What hangs on an operator that is named already is no news.
      if (unsupported.empty())
        unsupported.insert(fmt::format("{} {}", node->kind().toQualString(), error.what));
    }
  }
  if (!unsupported.empty()) {
    throw DataError(
        fmt::format("this model has no form in ONNX here: {}; format=torchscript holds "
                    "every model",
                    fmt::join(unsupported, ", ")));
  }
  std::vector<const onnx::Value*> results;
  onnx::add_results(source->outputs().at(0), results);
  onnx::Message message;
  std::vector<onnx::Message> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string name = i == 0 ? "output" : fmt::format("output_{}", i);
    graph.nodes.push_back(onnx::node_proto("Identity", {graph.name(results[i])}, name, {}));
    const int64_t channels = graph.channels(results[i]);
    std::vector<std::string> shape =
        onnx::shape_text(shapes, channels > 0 ? fmt::to_string(channels) : name + "_channels");
    for (std::size_t d = 2; i > 0 && d < shape.size(); ++d)
      shape[d] = fmt::format("{}_{}", name, d);
    outputs.push_back(onnx::value_proto(name, shape));
  }
  for (const onnx::Message& node : graph.nodes) message.message(1, node);
  message.text(2, "cytra");
  for (const onnx::Message& weight : graph.initializers) message.message(5, weight);
  message.message(
      11, onnx::value_proto("image", onnx::shape_text(shapes, fmt::to_string(shapes.in_channels))));
  for (const onnx::Message& output : outputs) message.message(12, output);
  std::string bytes = onnx::model_proto(message, metadata);
  if (bytes.size() >= std::size_t{1} << 31)
    throw DataError(
        "an ONNX file holds at most 2 GB, and this model is larger; format=torchscript");
  return bytes;
}

}  // namespace cytra::perf
