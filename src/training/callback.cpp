#include "training/callback.h"

#include <ATen/core/Tensor.h>

namespace cytra::training {

void Context::log_only(const Metrics& metrics) const {
  for (const auto& logger : loggers) logger->log(metrics, state.logged_epoch(), state.step);
}

std::map<std::string, Tensor> Callback::tensors() const {
  return {};
}

}  // namespace cytra::training
