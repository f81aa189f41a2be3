#pragma once
#include <algorithm>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace cytra::test {

/// Counts what torch's allocators give this thread, while a c10::DebugInfoGuard holds it.
class AllocationCounter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*address*/,
                         int64_t bytes,
                         std::size_t /*allocated*/,
                         std::size_t /*reserved*/,
                         c10::Device /*device*/) override {
    if (bytes > 0) ++count;
    held += bytes;
    peak = std::max(peak, held);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t count = 0, held = 0, peak = 0;
};

}  // namespace cytra::test
