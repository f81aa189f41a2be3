#include "base/memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strings.h"

// Of jemalloc, null in a process without it: a library of ours never asks for it to be loaded.
extern "C" int mallctl(const char* name,
                       void* old,
                       std::size_t* old_size,
                       void* value,
                       std::size_t value_size) __attribute__((weak));

namespace cytra {
namespace {

int64_t heap_number(const char* name) {
  std::size_t number = 0, size = sizeof number;
  return ::mallctl(name, &number, &size, nullptr, 0) == 0 ? static_cast<int64_t>(number) : 0;
}

/// The number after `name`, which begins a line of the file, or the file's first; none where there
/// is no number ("max", "unlimited").
std::optional<int64_t> number_of(const std::string& path, const std::string& name = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!starts_with(line, name)) continue;
    const char* text = line.c_str() + name.size();
    char* end = nullptr;
    const int64_t number = std::strtoll(text, &end, 10);  // the largest for what is beyond it
    return end == text ? std::nullopt : std::optional(number);
  }
  return {};
}

/// Where this process stands below the mount of a controller: "/a/b", or "" at its top. v2 has no
/// name there.
std::string group_of(const std::string& root, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/a/b", "0::/a/b"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> names = split(line.substr(first + 1, second - first - 1), ',');
    if (std::find(names.begin(), names.end(), controller) == names.end()) continue;
    const std::string path = line.substr(second + 1);
    return path == "/" || path[0] != '/' ? "" : path;
  }
  return "";
}

struct GroupFiles {
  const char *folder, *controller, *limit, *used, *idle, *read_again;  // pages of files
};
constexpr GroupFiles kVersions[] = {
    {"/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file ", "active_file "},
    {"/sys/fs/cgroup/memory",
     "memory",
     "memory.limit_in_bytes",
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
  if (const auto free_kb = number_of(machine, "MemAvailable:"))
    take(1024 * (*free_kb + number_of(machine, "SwapFree:").value_or(0)), "the machine");
  for (const GroupFiles& version : kVersions) {
    // Within a container the mount may begin at its own group while the path is the host's: what
    // is not there is passed over.
    for (std::string group = group_of(root, version.controller);;) {
      const std::string folder = root + version.folder + group + "/";
      if (const auto limit = number_of(folder + version.limit)) {
        const int64_t used = number_of(folder + version.used).value_or(0);
        const std::string pages = folder + "memory.stat";
        const int64_t droppable = number_of(pages, version.idle).value_or(0) +
                                  number_of(pages, version.read_again).value_or(0);
        take(*limit - used + std::min(droppable, used), "the container's limit");
      }
      if (group.empty()) break;
      group.resize(group.rfind('/'));
    }
  }
  const auto space = number_of(root + "/proc/self/limits", "Max address space");
  const auto pages = number_of(root + "/proc/self/statm");
  if (space && pages) take(*space - *pages * ::sysconf(_SC_PAGESIZE), "ulimit -v");
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

void prefer_large_pages(void* data, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t kPage = std::uintptr_t{1} << 21;
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(data) + kPage - 1) & ~(kPage - 1);
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(data) + bytes) & ~(kPage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace cytra
