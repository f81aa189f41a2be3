#include "inference/cuda/graph.h"

#include <mutex>

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda/graph.h"

namespace cytra::inference {
namespace {

/// Captures all kernels of a pass once and starts them together: this saves the host's time for
/// each of them.
class Graphed final : public FixedEngine {
 public:
  explicit Graphed(const GraphTask& task) : text_(task.text) {
    const c10::InferenceMode inference_mode;
    const c10::cuda::CUDAGuard device(task.example.device());
    input_ = task.example.clone();
    const device::GraphRecorder recorder(task.example.device());
    const auto pass = [&] { outputs_ = task.forward(input_); };
    for (int i = 0; i < kWarmUp; ++i) recorder.rehearse(pass, /*may_wait=*/true);
    graph_ = recorder.record(pass);
  }

  std::vector<Tensor> run(const Tensor& windows) override {
    const c10::InferenceMode inference_mode;
    const c10::cuda::CUDAGuard device(input_.device());
    const std::lock_guard lock(mutex_);  // one input and one set of outputs
    done_.block(c10::cuda::getCurrentCUDAStream());
    input_.copy_(windows);
    graph_->replay();
    std::vector<Tensor> outputs;
    for (const Tensor& output : outputs_) outputs.push_back(output.clone());
    done_.record();
    return outputs;
  }
  int64_t count() const override { return input_.size(0); }
  std::string text() const override { return text_; }

 private:
  static constexpr int kWarmUp = 3;  // libraries choose their algorithms, the tracer specialises
  std::string text_;
  std::unique_ptr<device::CudaGraph> graph_;
  Tensor input_;
  std::vector<Tensor> outputs_;
  std::mutex mutex_;
  at::cuda::CUDAEvent done_;
};

}  // namespace
}  // namespace cytra::inference

extern "C" cytra::inference::FixedEngine* cytra_make_graph(
    const cytra::inference::GraphTask& task) {
  return new cytra::inference::Graphed(task);
}
