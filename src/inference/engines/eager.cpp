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
    return forward_with(model_, precision_, windows);
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
