#include "device/memory.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "device/backend.h"

namespace cytra::device {

int64_t free_memory(c10::Device device) {
  return backend_of(device).free_memory(device);
}

void empty_cache(c10::Device device) {
  backend_of(device).empty_cache(device);
}

at::Tensor to_host(const at::Tensor& values) {
  if (values.is_cpu() || !pins_memory(values.device())) return values.cpu();
  const at::Tensor host =
      at::empty_like(values, values.options().device(at::kCPU).pinned_memory(true));
  host.copy_(values, /*non_blocking=*/true);
  c10::impl::VirtualGuardImpl(values.device().type()).getStream(values.device()).synchronize();
  return host;
}

at::Tensor page_locked(const at::Tensor& like) {
  return at::empty(like.sizes(), at::TensorOptions(like.scalar_type()).pinned_memory(true));
}

at::Tensor to_device(const at::Tensor& values, c10::Device device) {
  if (!values.is_cpu() || !pins_memory(device)) return values.to(device);
  return at::empty_like(values, values.options().pinned_memory(true))
      .copy_(values)
      .to(device, /*non_blocking=*/true);
}

}  // namespace cytra::device
