#include "export/onnx.h"

#include <set>
#include <sstream>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/error.h"
#include "export/onnx/graph.h"

namespace cytra::exporting {
namespace onnx {

namespace jit = torch::jit;

namespace {

/// Adds the tensors of a module's result, in their order.
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
  // A frozen module has no attributes left.
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
  std::shared_ptr<torch::jit::Graph> source = onnx::frozen_graph(torchscript);
  onnx::Graph graph(shapes.spatial_dims);
  if (!shapes.fixed.empty()) {
    torch::jit::ConstantPropagation(source);
    std::vector<int64_t> sides{1, shapes.in_channels};
    sides.insert(sides.end(), shapes.fixed.begin(), shapes.fixed.end());
    graph.run(*source, at::zeros(sides));
  }
  const onnx::Value* image = source->inputs().at(1);  // after `self`
  graph.set(image, "image");
  graph.set_channels(image, shapes.in_channels);
  std::set<std::string> unsupported;
  for (const onnx::Node* node : source->nodes()) {
    try {
      if (!onnx::translate(graph, *node)) unsupported.insert(node->kind().toQualString());
    } catch (const onnx::Unsupported& error) {
      // Problems that follow from an operator that is already named are not reported.
      if (unsupported.empty())
        unsupported.insert(fmt::format("{} {}", node->kind().toQualString(), error.what));
    }
  }
  if (!unsupported.empty()) {
    throw DataError("this model can't be written as ONNX: {}; format=torchscript holds every model",
                    fmt::join(unsupported, ", "));
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
        "an ONNX file holds at most 2 GB, and this model is larger; use format=torchscript");
  return bytes;
}

}  // namespace cytra::exporting
