#include "perf/compile.h"

#include <sstream>

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/frozen_graph_optimizations.h>
#include <torch/csrc/jit/passes/frozen_ops_to_mkldnn.h>
#include <torch/csrc/jit/serialization/import.h>

namespace cytra::perf {

namespace jit = torch::jit;
namespace {

jit::Module trace(const Forward& forward, const Tensor& example) {
  const auto traced = jit::tracer::trace(
      {example},
      [&](jit::Stack inputs) -> jit::Stack { return {forward(inputs.at(0).toTensor())}; },
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
  return [module](const Tensor& input) mutable { return module.forward({input}).toTensor(); };
}

}  // namespace

Forward compile(const Forward& forward, const Tensor& example) {
  jit::Module frozen = trace(forward, example);
  return run(jit::optimize_for_inference(frozen));
}

std::string to_torchscript(const Forward& forward,
                           const Tensor& example,
                           const std::map<std::string, std::string>& files) {
  const jit::Module frozen = trace(forward, example);
  std::ostringstream bytes;
  frozen.save(bytes, {files.begin(), files.end()});
  return bytes.str();
}

Forward from_torchscript(const std::string& bytes) {
  std::istringstream input(bytes);
  return run(jit::load(input));
}

}  // namespace cytra::perf
