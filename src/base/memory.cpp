#include "base/memory.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/control_groups.h"

// A function of jemalloc; null in a process without it, as our libraries do not load jemalloc.
extern "C" int mallctl(const char* name,
                       void* old,
                       std::size_t* old_size,
                       void* value,
                       std::size_t value_size) __attribute__((weak));

namespace cytra {
namespace {

std::atomic<bool> is_spared = false;

int64_t heap_number(const char* name) {
  std::size_t number = 0, size = sizeof number;
  return ::mallctl(name, &number, &size, nullptr, 0) == 0 ? static_cast<int64_t>(number) : 0;
}

/// Names of files with the same meaning in v2 and v1.
struct GroupFiles {
  const char *limit, *used, *idle, *read_again;  // pages of files
};
constexpr GroupFiles kVersions[] = {
    {"memory.max", "memory.current", "inactive_file ", "active_file "},
    {"memory.limit_in_bytes",
     "memory.usage_in_bytes",
     "total_inactive_file ",
     "total_active_file "}};

}  // namespace

AvailableMemory available_memory(const std::string& root) {
  AvailableMemory least;
  const auto take = [&](int64_t bytes, const char* limit) {
    if (bytes < least.bytes) least = {std::max<int64_t>(0, bytes), limit};
  };
  const std::string machine = root + "/proc/meminfo";
  if (const auto free_kb = number_in_file(machine, "MemAvailable:"))
    take(1024 * (*free_kb + number_in_file(machine, "SwapFree:").value_or(0)), "the machine");
  for (const std::string& folder : control_group_folders("memory", root)) {
    for (const GroupFiles& files : kVersions) {
      const auto limit = number_in_file(folder + files.limit);
      if (!limit) continue;
      const int64_t used = number_in_file(folder + files.used).value_or(0);
      const std::string pages = folder + "memory.stat";
      const int64_t droppable = number_in_file(pages, files.idle).value_or(0) +
                                number_in_file(pages, files.read_again).value_or(0);
      take(*limit - used + std::min(droppable, used), "the container's limit");
    }
  }
  const auto space = number_in_file(root + "/proc/self/limits", "Max address space");
  const auto pages = number_in_file(root + "/proc/self/statm");
  if (space && pages) take(*space - *pages * ::sysconf(_SC_PAGESIZE), "ulimit -v");
  const auto data = number_in_file(root + "/proc/self/limits", "Max data size");
  const auto data_kb = number_in_file(root + "/proc/self/status", "VmData:");
  if (data && data_kb) take(*data - 1024 * *data_kb, "ulimit -d");
  if (const auto heap = heap_statistics(); heap && least.bytes < INT64_MAX)
    least.bytes += heap->unused;
  return least;
}

std::optional<HeapStatistics> heap_statistics() {
  if (::mallctl == nullptr) return {};
  uint64_t now = 1;  // any number: the statistics are taken anew
  if (::mallctl("epoch", nullptr, nullptr, &now, sizeof now) != 0) return {};
  return HeapStatistics{
      heap_number("stats.allocated"),
      heap_number("stats.arenas.4096.pdirty") * heap_number("arenas.page")};  // 4096: of all arenas
}

void release_unused_memory() {
  if (::mallctl != nullptr) ::mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

void spare_memory() {
  if (is_spared.exchange(true) || ::mallctl == nullptr) return;
  unsigned arenas = 0;
  std::size_t size = sizeof arenas;
  ::mallctl("arenas.narenas", &arenas, &size, nullptr, 0);
  ssize_t none = 0;
  for (unsigned arena = 0; arena < arenas; ++arena)
    for (const char* kind : {"dirty", "muzzy"})
      ::mallctl(fmt::format("arena.{}.{}_decay_ms", arena, kind).c_str(),
                nullptr,
                nullptr,
                &none,
                sizeof none);
}

bool is_memory_spared() {
  return is_spared;
}

void prefer_large_pages(void* data, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t kPage = std::uintptr_t{1} << 21;
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(data) + kPage - 1) & ~(kPage - 1);
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(data) + bytes) & ~(kPage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace cytra
