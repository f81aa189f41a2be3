#pragma once
// The available memory, to check beforehand whether work fits; and the heap.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cytra {

struct AvailableMemory {
  int64_t bytes = INT64_MAX;  // that this process can still take; INT64_MAX: unknown
  std::string limit;          // what limits it, for messages: "the machine", "the container's
                              // limit"
};

/// The least of what the machine has left (with its swap), of what its control groups (v1 or v2,
/// those around it, too) leave it, and of `ulimit -v`. Pages of files that a group can drop count
/// as left, and so does what the heap keeps unused. Costs a few reads of /proc and /sys. `root` is
/// put before these paths, for tests.
AvailableMemory available_memory(const std::string& root = "");

/// The heap of this process, in bytes.
struct HeapStatistics {
  int64_t allocated = 0;  // allocated and not freed
  int64_t unused = 0;     // kept for later allocations; part of the resident memory
};
/// The statistics of jemalloc, the programs' allocator; none in a process without it.
std::optional<HeapStatistics> heap_statistics();
/// Gives what the heap keeps unused back to the system; does nothing without jemalloc.
void release_unused_memory();
/// Spends time to save memory from now on, in a process that would not fit otherwise: the heap
/// gives unused blocks back at once, and what can be made again is not kept.
void spare_memory();
bool is_memory_spared();
/// Asks for large pages under memory that is going to be written: the first write then takes a
/// tenth of the time.
void prefer_large_pages(void* data, std::size_t bytes);

}  // namespace cytra
