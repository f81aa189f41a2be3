#include <ATen/core/Tensor.h>

#include "training/callback.h"

namespace cytra::training {

std::vector<Tensor> Task::sums() {
  return {};
}

std::map<std::string, Tensor> Task::preview(const data::Batch& /*batch*/) {
  return {};
}

std::map<std::string, Tensor> Callback::tensors() const {
  return {};
}

}  // namespace cytra::training
