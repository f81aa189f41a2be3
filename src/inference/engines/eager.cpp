// Runs PyTorch's operations one after the other.
#include <ATen/ATen.h>

#include "inference/engines/entry.h"
#include "ops/conv/constant_weights.h"

namespace cytra::inference {
namespace {

class Eager final : public FixedEngine {
 public:
  Eager(const EngineModel& model, const EngineOptions& options)
      : model_(model), precision_(precision_of(options)) {}
  std::vector<Tensor> run(const Tensor& windows) override {
    const ops::ConstantWeights::Scope constant(weights_);
    if (!model_.device.is_cpu()) return forward_with(model_, precision_, windows);
    std::vector<std::vector<Tensor>> parts;  // by output
    for (const Tensor& some : windows.split(windows_at_once(windows))) {
      std::vector<Tensor> outputs = forward_with(model_, precision_, some);
      parts.resize(outputs.size());
      for (std::size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(std::move(outputs[i]));
    }
    std::vector<Tensor> outputs;
    for (std::vector<Tensor>& part : parts)
      outputs.push_back(part.size() == 1 ? std::move(part[0]) : at::cat(part));
    return outputs;
  }
  std::string text() const override { return "eager, " + name_of(precision_.compute); }
  bool takes_any_size() const override { return true; }
  bool was_accepted() const override { return true; }

 private:
  const EngineModel model_;
  const device::Precision precision_;
  ops::ConstantWeights weights_;
};

int rank_eager(const EngineModel&, const EngineOptions&) {
  return 1;
}

std::unique_ptr<FixedEngine> make_eager(const EngineModel& model,
                                        const EngineOptions& options,
                                        const Tensor&) {
  return std::make_unique<Eager>(model, options);
}

const bool added_eager = add_engine("eager", {rank_eager, make_eager});

}  // namespace
}  // namespace cytra::inference
