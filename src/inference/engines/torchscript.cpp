// Runs the model as traced, frozen and optimised by TorchScript.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "device/backend.h"
#include "inference/engines/traced.h"

namespace cytra::inference {
namespace {

class TorchScript final : public FixedEngine {
 public:
  TorchScript(const EngineModel& model, const EngineOptions& options, const Tensor& example)
      : type_(precision_of(options).compute),
        count_(example.size(0)),
        forward_(traced(model, options, example)) {
    run(example);  // the executor profiles a first pass, and specialises by it
  }
  std::vector<Tensor> run(const Tensor& windows) override {
    const c10::InferenceMode inference_mode;
    return forward_(windows);
  }
  int64_t count() const override { return count_; }
  std::string text() const override { return "TorchScript, " + name_of(type_); }

 private:
  c10::ScalarType type_;
  int64_t count_;
  exporting::Forward forward_;
};

/// The rank; 0 on a CPU, as a trace has ATen's instance norm, which takes longer than ours.
int rank_torchscript(const EngineModel& model, const EngineOptions& options) {
  return device::is_accelerator(model.device) && options.compile_model ? 10 : 0;
}

void check_torchscript(const EngineOptions& options) {
  exporting::expect_fusion_strategy(options.fusion_strategy);
}

std::unique_ptr<FixedEngine> make_torchscript(const EngineModel& model,
                                              const EngineOptions& options,
                                              const Tensor& example) {
  return std::make_unique<TorchScript>(model, options, example);
}

const bool added_torchscript =
    add_engine("torchscript", {rank_torchscript, make_torchscript, nullptr, check_torchscript});

}  // namespace

}  // namespace cytra::inference
