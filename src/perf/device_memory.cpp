#include "perf/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include "base/memory.h"

namespace cytra::perf {

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

}  // namespace cytra::perf
