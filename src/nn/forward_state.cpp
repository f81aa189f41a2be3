#include "nn/forward_state.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "base/log.h"

namespace cytra::nn {

ForwardState::ForwardState(torch::nn::Module& module) {
  const std::vector<at::Tensor> parameters = module.parameters();
  std::vector<c10::Device> devices{c10::Device(at::kCPU)};
  if (!parameters.empty() && !parameters[0].device().is_cpu())
    devices.push_back(parameters[0].device());
  for (const c10::Device device : devices) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard lock(generator.mutex());
    devices_.push_back({device,
                        generator.get_state(),
                        at::autocast::is_autocast_enabled(device.type()),
                        at::autocast::get_autocast_dtype(device.type())});
  }
  for (const auto& part : module.modules()) modes_.emplace_back(part, part->is_training());
  for (const at::Tensor& buffer : module.buffers()) {
    if (buffer.defined()) buffers_.emplace_back(buffer, buffer.detach().clone());
  }
}

void ForwardState::restore() const {
  for (const OfDevice& state : devices_) {
    at::Generator generator = at::globalContext().defaultGenerator(state.device);
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state.generator);
    at::autocast::set_autocast_enabled(state.device.type(), state.is_autocast);
    at::autocast::set_autocast_dtype(state.device.type(), state.autocast_dtype);
  }
  // train() also sets the mode of inner modules, which come later in the list.
  for (const auto& [part, is_training] : modes_) {
    if (part->is_training() != is_training) part->train(is_training);
  }
  const at::NoGradGuard no_grad;
  for (const auto& [buffer, values] : buffers_) buffer.copy_(values);
}

KeepForwardState::~KeepForwardState() noexcept(false) {
  try {
    state_.restore();
  } catch (const std::exception& error) {
    if (std::uncaught_exceptions() == errors_) throw;
    log::warn("the state of random generators and buffers could not be put back: {}", error.what());
  }
}

}  // namespace cytra::nn
