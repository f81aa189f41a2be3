// The model's pass as a CUDA graph.
#include <ATen/ATen.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/cuda_graph.h"
#include "inference/engines/traced.h"

namespace cytra::inference {
namespace {

class Graphed final : public FixedEngine {
 public:
  Graphed(exporting::Forward forward, const Tensor& example, std::string text)
      : count_(example.size(0)),
        text_(std::move(text)),
        graph_([forward = std::move(forward)](
                   const std::vector<Tensor>& inputs) { return forward(inputs[0]); },
               {example}) {}
  std::vector<Tensor> run(const Tensor& windows) override { return graph_({windows}); }
  int64_t count() const override { return count_; }
  std::string text() const override { return text_; }

 private:
  const int64_t count_;
  const std::string text_;
  device::CUDAGraphWrapper graph_;
};

int rank_cudagraph(const EngineModel& model, const EngineOptions& options) {
  const bool is_asked = options.compile_model && (options.compile_mode == "reduce-overhead" ||
                                                  options.compile_mode == "max-autotune");
  return device::has_graphs(model.device) && is_asked ? 20 : 0;
}

std::unique_ptr<FixedEngine> make_cudagraph(const EngineModel& model,
                                            const EngineOptions& options,
                                            const Tensor& example) {
  const bool is_traced = options.compile_mode == "max-autotune";
  const device::Precision precision = precision_of(options);
  exporting::Forward forward = [model, precision](const Tensor& windows) {
    return forward_with(model, precision, windows);
  };
  if (is_traced) forward = traced(model, options, example);
  try {
    return std::make_unique<Graphed>(
        std::move(forward),
        example,
        (is_traced ? "TorchScript in a CUDA graph, " : "CUDA graph, ") +
            name_of(precision.compute));
  } catch (const ConfigError& error) {
    throw EngineUnfit(error.what(), false);
  }
}

const bool added_cudagraph = add_engine("cudagraph", {rank_cudagraph, make_cudagraph});

}  // namespace
}  // namespace cytra::inference
