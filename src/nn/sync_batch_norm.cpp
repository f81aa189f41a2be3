#include "nn/sync_batch_norm.h"

#include "base/error.h"
#include "nn/blocks/layers.h"
#include "nn/model.h"

namespace cytra::nn {

int64_t sync_batch_norms(Model& model, const std::function<void(const at::Tensor&)>& sum) {
  const std::vector<std::string> foreign = model.foreign_batch_norms();
  if (!foreign.empty()) {
    throw ConfigError(
        "trainer.sync_batchnorm: {} is a batch norm that Cytra's blocks do not have; expected "
        "false, or a model with nn::Norm",
        foreign.front());
  }
  int64_t count = 0;
  for (const auto& module : model.named_modules()) {
    auto* norm = dynamic_cast<Norm*>(module.value().get());
    if (norm != nullptr && norm->is_of_batch()) {
      norm->sum_over_processes = sum;
      ++count;
    }
  }
  return count;
}

}  // namespace cytra::nn
