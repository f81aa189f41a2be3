#pragma once
// The memory at hand, for plans that should fit before they start.
#include <cstdint>
#include <string>

namespace cytra {

struct AvailableMemory {
  int64_t bytes = INT64_MAX;  // that this process can still take; INT64_MAX: nothing tells
  std::string limit;          // what ends it, for messages: "the machine", "the container's limit"
};

/// The least of what the machine has left (with its swap), of what its control groups (v1 or v2,
/// those around it, too) leave it, and of `ulimit -v`. Pages of files that a group can drop count
/// as left. Costs a few reads of /proc and /sys. `root`: of another file system, for tests.
AvailableMemory available_memory(const std::string& root = "");

}  // namespace cytra
