#include "export/compile.h"

#include <sstream>

#include <ATen/ATen.h>
#include <ATen/native/quantized/PackedParams.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/frozen_graph_optimizations.h>
#include <torch/csrc/jit/passes/frozen_ops_to_mkldnn.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/error.h"
#include "base/strings.h"
#include "ops/linear/int8_weights.h"

namespace cytra::exporting {

namespace jit = torch::jit;
namespace {

c10::IValue pack(std::vector<at::Tensor> outputs) {
  if (outputs.size() == 1) return std::move(outputs[0]);
  return c10::ivalue::Tuple::create(std::vector<c10::IValue>(outputs.begin(), outputs.end()));
}

std::vector<at::Tensor> unpack(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> outputs;
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      if (!element.isTensor()) break;
      outputs.push_back(element.toTensor());
    }
    if (!outputs.empty() && outputs.size() == value.toTupleRef().elements().size()) return outputs;
  }
  throw DataError("a TorchScript model gives " + value.type()->repr_str() +
                  "; expected a tensor, or a tuple or list of tensors");
}

jit::FusionStrategy fusion_strategy_of(const config::Node& node) {
  const std::vector<std::string> kinds{"static", "dynamic"};
  jit::FusionStrategy strategy;
  const auto fail = [](const config::Node& part, const std::string& hint) {
    throw ConfigError(
        "{}: expected pairs of a kind and a number of shapes, [[STATIC, 2], [DYNAMIC, 10]].{}",
        part.where(),
        hint);
  };
  if (node.kind != config::Kind::list) fail(node, "");
  for (const config::Node& pair : node.list) {
    if (pair.list.size() != 2 || pair.list[0].kind != config::Kind::string) fail(pair, "");
    const config::Node& shapes = pair.list[1];
    const std::string kind = in_small_letters(pair.list[0].string);
    if (kind != kinds[0] && kind != kinds[1]) fail(pair.list[0], suggestion(kind, kinds));
    if (shapes.kind != config::Kind::integer || shapes.integer < 1 || shapes.integer > 1000)
      fail(shapes, " The number is from 1 to 1000.");
    strategy.emplace_back(
        kind == kinds[0] ? jit::FusionBehavior::STATIC : jit::FusionBehavior::DYNAMIC,
        shapes.integer);
  }
  return strategy;
}

jit::Module trace(const Forward& forward, const Tensor& example) {
  const auto traced = jit::tracer::trace(
      {example},
      [&](jit::Stack inputs) -> jit::Stack { return {pack(forward(inputs.at(0).toTensor()))}; },
      [](const at::Tensor&) { return std::string(); });
  const std::shared_ptr<jit::Graph> graph = traced.first->graph;
  jit::Module module("Compiled");
  graph->insertInput(0, "self")->setType(module.type());
  const auto name = c10::QualifiedName(*module.type()->name(), "forward");
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(name, graph));
  module.eval();
  return jit::freeze(module);
}

std::string bytes_of(const jit::Module& module, const std::map<std::string, std::string>& files) {
  std::ostringstream bytes;
  module.save(bytes, {files.begin(), files.end()});
  return bytes.str();
}

/// Replaces linear layers of constant weights by torch's, which round their inputs. Returns their
/// number.
int64_t quantize_linear(jit::Module& module) {
  const std::shared_ptr<jit::Graph> graph = module.get_method("forward").graph();
  std::vector<jit::Node*> layers;
  for (jit::Node* node : graph->nodes()) {
    if (node->kind() == c10::aten::linear && jit::toIValue(node->input(1)) &&
        jit::toIValue(node->input(2)))
      layers.push_back(node);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const c10::IValue bias = *jit::toIValue(layers[i]->input(2));
    const c10::IValue packed(ops::int8_packed(jit::toIValue(layers[i]->input(1))->toTensor(),
                                              bias.isNone() ? at::Tensor() : bias.toTensor()));
    const std::string name = fmt::format("int8_{}", i);
    module.register_attribute(name, packed.type(), packed);
    const jit::WithInsertPoint here(layers[i]);
    jit::Value* weights = graph->insertGetAttr(graph->inputs()[0], name);
    const bool reduces_range = true;  // where it runs may have no VNNI: int8_weights.cpp
    jit::Value* made = graph->insert(c10::Symbol::fromQualString("quantized::linear_dynamic"),
                                     {layers[i]->input(0), weights, reduces_range});
    layers[i]->output()->replaceAllUsesWith(made);
    layers[i]->destroy();
  }
  jit::EliminateDeadCode(graph);  // the weights of before
  return std::ssize(layers);
}

Forward run(jit::Module module) {
  return [module](const Tensor& input) mutable { return unpack(module.forward({input})); };
}

}  // namespace

void expect_fusion_strategy(const config::Node& node) {
  if (!node.is_null()) fusion_strategy_of(node);
}

void set_fusion_strategy(const config::Node& node) {
  if (node.is_null()) return;
  jit::FusionStrategy strategy = fusion_strategy_of(node);
  jit::setFusionStrategy(strategy);
}

Forward compile(const Forward& forward, const Tensor& example) {
  jit::Module frozen = trace(forward, example);
  return run(jit::optimize_for_inference(frozen));
}

std::string to_torchscript(const Forward& forward,
                           const Tensor& example,
                           const std::map<std::string, std::string>& files) {
  return bytes_of(trace(forward, example), files);
}

std::string to_int8_torchscript(const Forward& forward,
                                const Tensor& example,
                                const std::map<std::string, std::string>& files) {
  jit::Module module = trace(forward, example);
  if (quantize_linear(module) == 0)
    throw ConfigError("quantization=int8_dynamic: the model has no linear layers");
  return bytes_of(module, files);
}

Forward from_torchscript(const std::string& bytes) {
  std::istringstream input(bytes);
  jit::Module module = jit::load(input);
  module.eval();
  return run(module);
}

}  // namespace cytra::exporting
