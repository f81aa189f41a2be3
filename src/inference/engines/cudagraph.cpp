// The model's pass as a CUDA graph, which libcytra_cuda.so holds.
#include <ATen/ATen.h>

#include "device/backend.h"
#include "inference/cuda/graph.h"
#include "inference/engines/traced.h"

namespace cytra::inference {
namespace {

int rank_cudagraph(const EngineModel& model, const EngineOptions& options) {
  const bool is_asked = options.compile_model && (options.compile_mode == "reduce-overhead" ||
                                                  options.compile_mode == "max-autotune");
  return device::has_graphs(model.device) && is_asked ? 20 : 0;
}

std::unique_ptr<FixedEngine> make_cudagraph(const EngineModel& model,
                                            const EngineOptions& options,
                                            const Tensor& example) {
  if (!device::has_graphs(model.device)) throw EngineUnfit("CUDA graphs need a GPU", false);
  std::string problem;
  const auto make = device::kernel<MakeGraph>(model.device, kMakeGraph, &problem);
  if (make == nullptr) throw EngineUnfit("this build has no CUDA graphs: " + problem, false);
  const bool is_traced = options.compile_mode == "max-autotune";
  const device::Precision precision = precision_of(options);
  GraphTask task{
      {},
      example,
      (is_traced ? "TorchScript in a CUDA graph, " : "CUDA graph, ") + name_of(precision.compute)};
  if (is_traced) {
    task.forward = traced(model, options, example);
  } else {
    task.forward = [&](const Tensor& windows) { return forward_with(model, precision, windows); };
  }
  return std::unique_ptr<FixedEngine>(make(task));
}

const bool added_cudagraph = add_engine("cudagraph", {rank_cudagraph, make_cudagraph});

}  // namespace
}  // namespace cytra::inference
