// Which checkpoint "last" and "best" mean.
#include <algorithm>
#include <filesystem>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "io/safetensors.h"
#include "training/checkpoint.h"

namespace cytra::training {
namespace {
namespace fs = std::filesystem;

/// The folders that runs with this output_dir wrote to: itself with a number appended, and for a
/// time all times beside it.
std::vector<fs::path> folders_of(const std::string& output_dir) {
  static const std::regex time(R"(\d{4}-\d{2}-\d{2}[_T]\d{2}[-:]\d{2}[-:]\d{2}.*)");
  const fs::path folder = fs::path(output_dir).lexically_normal();
  const std::string own = folder.filename().string();
  const bool is_time = std::regex_match(own, time);
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    const std::string rest = starts_with(name, own) ? name.substr(own.size()) : "?";
    const bool is_numbered =
        rest.size() > 1 && rest[0] == '-' &&
        std::all_of(rest.begin() + 1, rest.end(), [](unsigned char c) { return std::isdigit(c); });
    if (rest.empty() || is_numbered || (is_time && std::regex_match(name, time)))
      folders.push_back(entry.path().lexically_normal());
  }
  return folders;
}

/// What a killed run left half written, in all of its folder.
void sweep(const fs::path& run) {
  std::vector<std::string> folders{run.string()};
  std::error_code error;
  for (fs::recursive_directory_iterator entry(run, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory(error)) folders.push_back(entry->path().string());
  }
  std::for_each(folders.begin(), folders.end(), remove_stale_temporaries);
}

config::Node state_in(const std::string& path) {
  const io::SafetensorsFile file(path);
  file.verify();
  const auto state = file.metadata().find("state");
  if (state == file.metadata().end()) throw DataError(path + ": not a checkpoint of Cytra");
  return config::parse_yaml(state->second, path + " (state)");
}

}  // namespace

std::string find_checkpoint(const std::string& which, const std::string& output_dir) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (const fs::path& folder : folders_of(output_dir)) {
    sweep(folder);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / "checkpoints", error)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".ckpt" && path.filename().string()[0] != '.')
        found.emplace_back(entry.last_write_time(error), path.string());
    }
  }
  std::sort(found.rbegin(), found.rend());  // newest first; last.ckpt before epoch_*.ckpt
  for (const auto& [time, path] : found) {
    try {
      const config::Node state = state_in(path);
      if (which == "last") return path;
      const auto best = state.get<std::string>("best_path");
      if (best.empty()) return path;
      state_in(best);
      return best;
    } catch (const Error& problem) {
      log::warn("passed over: {}", problem.what());
    }
  }
  return "";
}

}  // namespace cytra::training
