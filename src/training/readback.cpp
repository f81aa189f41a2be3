#include "training/readback.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/lists.h"

namespace cytra::training {

struct Readback::Event {
  c10::Event event;
};

Readback::Readback(const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  const at::Tensor together = at::stack(
      mapped(values, [](const at::Tensor& value) { return value.detach().to(at::kDouble); }));
  const c10::Device device = together.device();
  if (device.is_cpu()) {
    host_ = together;
    return;
  }
  host_ = at::empty(together.sizes(), at::TensorOptions(at::kDouble).pinned_memory(true));
  host_.copy_(together, /*non_blocking=*/true);
  event_ = std::make_unique<Event>(Event{c10::Event(device.type())});
  event_->event.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

Readback::~Readback() = default;
Readback::Readback(Readback&&) noexcept = default;
Readback& Readback::operator=(Readback&&) noexcept = default;

std::vector<double> Readback::wait() const {
  if (event_) event_->event.synchronize();
  const double* first = host_.const_data_ptr<double>();
  return {first, first + host_.numel()};
}

}  // namespace cytra::training
