#include "training/find_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/run_lock.h"
#include "config/json.h"
#include "io/safetensors.h"
#include "nn/checkpoint_format.h"

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
    const std::string rest = name.starts_with(own) ? name.substr(own.size()) : "?";
    const bool is_numbered =
        rest.size() > 1 && rest[0] == '-' &&
        std::all_of(rest.begin() + 1, rest.end(), [](unsigned char c) { return std::isdigit(c); });
    if (rest.empty() || is_numbered || (is_time && std::regex_match(name, time)))
      folders.push_back(entry.path().lexically_normal());
  }
  return folders;
}

/// Removes what a killed run left half written in its folder.
void sweep(const fs::path& run) {
  std::vector<std::string> folders{run.string()};
  std::error_code error;
  for (fs::recursive_directory_iterator entry(run, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory(error)) folders.push_back(entry->path().string());
  }
  std::ranges::for_each(folders, remove_stale_temporaries);
}

config::Node state_in(const io::SafetensorsFile& file, const std::string& path) {
  nn::format_of(file.metadata(), path);
  const auto state = file.metadata().find("state");
  if (state == file.metadata().end()) throw DataError(path + ": not a checkpoint of Cytra");
  return config::from_utf8(config::parse_json(state->second, path + " (state)"));
}

struct Found {
  int64_t step;
  fs::file_time_type time;
  std::string path;
};

}  // namespace

std::string find_checkpoint(const std::string& which, const std::string& output_dir) {
  std::vector<Found> found;
  std::string problem;  // the first of all
  int64_t files = 0;
  const auto pass_over = [&](const Error& error) {
    log::warn("skipped: {}", error.what());
    if (problem.empty()) problem = error.what();
  };
  std::error_code error;
  for (const fs::path& folder : folders_of(output_dir)) {
    sweep(folder);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / "checkpoints", error)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".ckpt" || path.filename().string()[0] == '.') continue;
      ++files;
      try {
        const io::SafetensorsFile file(path.string());
        found.push_back({state_in(file, path.string()).get<int64_t>("step"),
                         entry.last_write_time(error),
                         path.string()});
      } catch (const Error& unreadable) {
        pass_over(unreadable);
      }
    }
  }
  // Newest first; last.ckpt before epoch_*.ckpt.
  std::ranges::sort(found, [](const Found& a, const Found& b) {
    return std::tie(a.step, a.time, a.path) > std::tie(b.step, b.time, b.path);
  });
  const auto read = [](const std::string& path) {
    const io::SafetensorsFile file(path);
    file.verify();
    return state_in(file, path);
  };
  for (const Found& one : found) {
    try {
      const config::Node state = read(one.path);
      if (which == "last") return one.path;
      const auto best = state.get<std::string>("best_path");
      if (best.empty()) return one.path;
      read(best);
      return best;
    } catch (const Error& damaged) {
      pass_over(damaged);
    }
  }
  if (files == 0) return "";
  throw DataError(
      "{}: none of its {} checkpoints can be read ({}); repair or move them, or start afresh "
      "without checkpoint.autoresume and ckpt_path",
      output_dir,
      files,
      problem);
}

void expect_ended(const std::string& output_dir) {
  for (const fs::path& folder : folders_of(output_dir)) {
    const std::string holder = holder_of(folder.string());
    if (holder.empty()) continue;
    throw ConfigError(
        "{}: this run is alive ({}), and checkpoint.autoresume would resume it a second time; wait "
        "for its end, or choose another run_name or paths.output_dir",
        folder.string(),
        holder);
  }
}

}  // namespace cytra::training
