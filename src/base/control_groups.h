#pragma once
// What the control groups (cgroup v1 or v2) of a container or a batch system leave this process.
// `root` stands before /proc and /sys: of another file system, for tests.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cytra {

/// Folders of a controller ("memory", "cpu") that hold for this process: its own group's, then
/// those around it. Of both versions: which files a folder has tells it. Within a container the
/// mount may begin at its own group while the path is the host's, so some may not be there.
std::vector<std::string> control_group_folders(const std::string& controller,
                                               const std::string& root = "");

/// The number after `name`, which begins a line of the file, or the file's first; none where there
/// is no number ("max", "unlimited").
std::optional<int64_t> number_in_file(const std::string& path, const std::string& name = "");

/// The least that a group allows, in processors (1.5: 150 ms of each 100 ms); none: no limit.
std::optional<double> processor_quota(const std::string& root = "");

/// Processors that this process can keep busy at a time, at least one: those it may run on, and no
/// more than the whole ones of its quota. More threads than that would wait for each other.
int available_processors(const std::string& root = "");

}  // namespace cytra
