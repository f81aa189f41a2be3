#include "base/control_groups.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <sched.h>

#include "base/strings.h"

namespace cytra {
namespace {

/// The group of this process below the mount of a controller: "/a/b", or "" at its top. v2 uses no
/// controller's name.
std::string group_of(const std::string& root, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/a/b", "0::/a/b"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> names = split(line.substr(first + 1, second - first - 1), ',');
    if (!contains(names, controller)) continue;
    const std::string path = line.substr(second + 1);
    return path == "/" || path[0] != '/' ? "" : path;
  }
  return "";
}

int processors_of_affinity() {
  cpu_set_t processors;
  if (::sched_getaffinity(0, sizeof processors, &processors) == 0) return CPU_COUNT(&processors);
  return static_cast<int>(std::thread::hardware_concurrency());  // more than a cpu_set_t names
}

}  // namespace

std::optional<int64_t> number_in_file(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const char* text = line.c_str() + name.size();
    char* end = nullptr;
    const int64_t number = std::strtoll(text, &end, 10);  // the largest for what is beyond it
    return end == text ? std::nullopt : std::optional(number);
  }
  return {};
}

std::vector<std::string> control_group_folders(const std::string& controller,
                                               const std::string& root) {
  std::vector<std::string> folders;
  for (const std::string& version : {std::string(), controller}) {
    const std::string mount = root + "/sys/fs/cgroup" + (version.empty() ? "" : "/" + version);
    for (std::string group = group_of(root, version);;) {
      folders.push_back(mount + group + "/");
      if (group.empty()) break;
      group.resize(group.rfind('/'));
    }
  }
  return folders;
}

std::optional<double> processor_quota(const std::string& root) {
  std::optional<double> least;
  const auto take = [&](int64_t time, int64_t period) {
    if (time <= 0 || period <= 0) return;  // -1: no limit
    const double processors = static_cast<double>(time) / static_cast<double>(period);
    least = std::min(processors, least.value_or(processors));
  };
  for (const std::string& folder : control_group_folders("cpu", root)) {
    constexpr int64_t kUsual = 100000;  // us
    take(number_in_file(folder + "cpu.cfs_quota_us").value_or(-1),
         number_in_file(folder + "cpu.cfs_period_us").value_or(kUsual));
    std::string time;
    int64_t period = kUsual;
    if (std::ifstream(folder + "cpu.max") >> time >> period)  // "150000 100000", "max 100000"
      take(std::strtoll(time.c_str(), nullptr, 10), period);
  }
  return least;
}

int available_processors(const std::string& root) {
  const double quota = processor_quota(root).value_or(1e6);
  return std::max(1, std::min(processors_of_affinity(), static_cast<int>(std::min(quota, 1e6))));
}

}  // namespace cytra
