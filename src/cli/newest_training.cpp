#include "cli/newest_training.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "config/node.h"
#include "config/overrides/overrides.h"

namespace cytra::cli {
namespace {

namespace fs = std::filesystem;

/// The overrides that say what was learned from what, without places and checkpoints of that run.
std::vector<std::string> overrides_in(const fs::path& file) {
  std::vector<std::string> overrides;
  for (const config::Node& word : config::parse_yaml(read_file(file), file.string()).list) {
    const config::Override override = config::parse_override(word.as<std::string>());
    if (!override.is_hydra() && !override.key.starts_with("paths.") &&
        !override.key.starts_with("checkpoint."))
      overrides.push_back(word.as<std::string>());
  }
  return overrides;
}

}  // namespace

fs::path newest_file(const fs::path& folder, const std::function<bool(const fs::path&)>& is_it) {
  fs::path newest;
  fs::file_time_type newest_time{};
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code missing;
    if (!is_it(entry->path()) || !entry->is_regular_file(missing)) continue;
    const auto time = entry->last_write_time(missing);
    if (missing || (!newest.empty() && time <= newest_time)) continue;
    newest = entry->path();
    newest_time = time;
  }
  return newest;
}

bool names_no_training(const std::vector<std::string>& overrides) {
  return std::ranges::none_of(overrides, [](const std::string& word) {
    const std::string key = config::parse_override(word).key;
    return key == "experiment" || key == "data" || key.starts_with("data.");
  });
}

void take_newest_training(const std::string& logs, Arguments& arguments) {
  constexpr const char* kPlans = "local";
  const fs::path run = newest_file(logs, [](const fs::path& path) {
    return path.filename() == "overrides.yaml" && path.parent_path().filename() == ".hydra";
  });
  const fs::path plan = newest_file(fs::path(kPlans) / "experiment", [](const fs::path& path) {
    return path.extension() == ".yaml";
  });
  if (run.empty() && plan.empty()) {
    throw ConfigError(
        "no experiment is named, and there is no run below {} and no plan in {}; expected "
        "experiment=im2im/segmentation data.path=FOLDER, or the folder in which a training ran",
        logs,
        kPlans);
  }
  std::vector<std::string> overrides;
  std::error_code error;
  if (run.empty() ||
      (!plan.empty() && fs::last_write_time(plan, error) > fs::last_write_time(run, error))) {
    overrides = {"experiment=" + plan.stem().string()};
    if (arguments.config_dir.empty()) arguments.config_dir = kPlans;
    log::info("the newest training is a plan, {}", plan.string());
  } else {
    overrides = overrides_in(run);
    log::info("the newest training is {}: {}",
              run.parent_path().parent_path().string(),
              join(overrides, " "));
  }
  arguments.overrides.insert(arguments.overrides.begin(), overrides.begin(), overrides.end());
}

}  // namespace cytra::cli
