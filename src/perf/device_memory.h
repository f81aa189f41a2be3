#pragma once
#include <cstdint>

#include <c10/core/Device.h>

namespace cytra::perf {

/// Bytes that this process can still take: of the host, or of a CUDA device (with what torch's
/// allocator keeps unused).
int64_t free_memory(c10::Device device);
/// Gives what the device's allocator keeps unused back to it.
void empty_cache(c10::Device device);

}  // namespace cytra::perf
