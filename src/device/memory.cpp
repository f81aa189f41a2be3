#include "device/memory.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/memory.h"

namespace cytra::device {

int64_t free_memory(c10::Device device) {
  if (device.is_cpu()) return available_memory().bytes;
  auto* allocator = at::getDeviceAllocator(device.type());
  const auto stats = allocator->getDeviceStats(device.index());
  return static_cast<int64_t>(allocator->getMemoryInfo(device.index()).first) +
         stats.reserved_bytes[0].current - stats.allocated_bytes[0].current;
}

void empty_cache(c10::Device device) {
  if (device.is_cpu()) return release_unused_memory();
  at::getDeviceAllocator(device.type())->emptyCache();
}

at::Tensor to_host(const at::Tensor& values) {
  if (!values.is_cuda()) return values.cpu();
  const at::Tensor host =
      at::empty_like(values, values.options().device(at::kCPU).pinned_memory(true));
  host.copy_(values, /*non_blocking=*/true);
  c10::impl::VirtualGuardImpl(values.device().type()).getStream(values.device()).synchronize();
  return host;
}

}  // namespace cytra::device
