#include "training/cuda/step_graph.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include "device/cuda/graph.h"
#include "training/trainer/step_recorder.h"

namespace cytra::training {
namespace {

class StepGraphs final : public StepRecorder {
 public:
  explicit StepGraphs(c10::Device device) : recorder_(device) {}

  void wait() override { c10::cuda::getCurrentCUDAStream().synchronize(); }
  std::vector<at::Tensor> rehearse(const Work& work, bool may_wait) override {
    std::vector<at::Tensor> outputs;
    said([&] { recorder_.rehearse([&] { outputs = work(); }, may_wait); });
    return outputs;
  }
  std::unique_ptr<Recording> record(const Work& work) override {
    auto graph = std::make_unique<Graph>();
    said([&] { graph->graph = recorder_.record([&] { graph->outputs = work(); }); });
    return graph;
  }

 private:
  struct Graph final : Recording {
    void replay() override { graph->replay(); }
    std::unique_ptr<device::CudaGraph> graph;
  };
  template <class Call>
  static void said(const Call& call) {
    try {
      call();
    } catch (const device::NotCapturable& error) {
      throw NotRecordable(error.what());
    }
  }
  device::GraphRecorder recorder_;
};

}  // namespace
}  // namespace cytra::training

extern "C" cytra::training::StepRecorder* cytra_make_step_graph(c10::Device device) {
  return new cytra::training::StepGraphs(device);
}
