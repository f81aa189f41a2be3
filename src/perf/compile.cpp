#include "perf/compile.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/frozen_graph_optimizations.h>
#include <torch/csrc/jit/passes/frozen_ops_to_mkldnn.h>

namespace cytra::perf {

Forward compile(const Forward& forward, const Tensor& example) {
  namespace jit = torch::jit;
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
  jit::Module frozen = jit::freeze(module);
  frozen = jit::optimize_for_inference(frozen);
  return [frozen](const Tensor& input) mutable { return frozen.forward({input}).toTensor(); };
}

}  // namespace cytra::perf
