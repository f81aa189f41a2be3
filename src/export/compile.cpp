#include "export/compile.h"

#include <sstream>

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/frozen_graph_optimizations.h>
#include <torch/csrc/jit/passes/frozen_ops_to_mkldnn.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/error.h"

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

Forward run(jit::Module module) {
  return [module](const Tensor& input) mutable { return unpack(module.forward({input})); };
}

Forward several(const Network& forward) {
  return [&forward](const Tensor& input) { return std::vector<Tensor>{forward(input)}; };
}

Network single(Forward forward) {
  return [forward = std::move(forward)](const Tensor& input) { return forward(input).at(0); };
}

}  // namespace

Forward compile(const Forward& forward, const Tensor& example) {
  jit::Module frozen = trace(forward, example);
  return run(jit::optimize_for_inference(frozen));
}

Network compile(const Network& forward, const Tensor& example) {
  return single(compile(several(forward), example));
}

std::string to_torchscript(const Forward& forward,
                           const Tensor& example,
                           const std::map<std::string, std::string>& files) {
  const jit::Module frozen = trace(forward, example);
  std::ostringstream bytes;
  frozen.save(bytes, {files.begin(), files.end()});
  return bytes.str();
}

std::string to_torchscript(const Network& forward,
                           const Tensor& example,
                           const std::map<std::string, std::string>& files) {
  return to_torchscript(several(forward), example, files);
}

Forward outputs_of_torchscript(const std::string& bytes) {
  std::istringstream input(bytes);
  jit::Module module = jit::load(input);
  module.eval();
  return run(module);
}

Network from_torchscript(const std::string& bytes) {
  return single(outputs_of_torchscript(bytes));
}

}  // namespace cytra::exporting
