#pragma once
// The limits that control groups (cgroup v1 or v2) of a container or a batch system set for this
// process. `root` is put before /proc and /sys, for tests.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cytra {

/// Folders of a controller ("memory", "cpu") that apply to this process: that of its own group,
/// then those of the groups around it. They may be of either version: their files show which.
/// Within a container the mount may begin at its own group while the path is the host's, so some
/// may not be there.
std::vector<std::string> control_group_folders(const std::string& controller,
                                               const std::string& root = "");

/// The number after `name`, which begins a line of the file, or the file's first; none where there
/// is no number ("max", "unlimited").
std::optional<int64_t> number_in_file(const std::string& path, const std::string& name = "");

/// The smallest quota of a group, in processors (1.5: 150 ms of each 100 ms); none: no limit.
std::optional<double> processor_quota(const std::string& root = "");

/// Processors that this process can keep busy at a time, at least one: those it may run on,
/// limited by its quota rounded down. More threads would wait for each other.
int available_processors(const std::string& root = "");

}  // namespace cytra
