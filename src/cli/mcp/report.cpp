#include "cli/mcp/report.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "config/run_config.h"

namespace cytra::cli::mcp {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEpochs = 100, kMostFiles = 200, kMostLines = 20;

/// The lines of a text file; none where it can't be read.
std::vector<std::string> lines_of(const fs::path& path) {
  if (!file_exists(path)) return {};
  std::vector<std::string> lines = split(read_file(path.string()), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

/// The metrics of each epoch, without those of single steps.
Json epochs_in(const fs::path& path) {
  Json epochs = Json::array();
  for (const std::string& line : lines_of(path)) {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object() || row.contains("train/loss_step") || !row.contains("epoch")) continue;
    if (epochs.empty() || epochs.back().at("epoch") != row.at("epoch"))
      epochs.push_back(Json::object());
    for (const auto& [key, value] : row.items())
      if (key != "time") epochs.back()[key] = value;
  }
  return epochs;
}

/// The best value of the metric that chose the checkpoints; none where no run's configuration
/// names one.
Json best_of(const Json& epochs, const std::string& folder) {
  Json best;
  try {
    const config::Node config = config::load_run_config(folder, true);
    const auto monitor = config.get<std::string>("callbacks.model_checkpoint.monitor", "");
    const bool is_max = config.get<std::string>("callbacks.model_checkpoint.mode", "min") == "max";
    for (const Json& epoch : epochs) {
      const Json value = epoch.value(monitor, Json());
      if (!value.is_number()) continue;
      const bool is_better =
          best.is_null() || (is_max ? value > best.at("value") : value < best.at("value"));
      if (is_better) best = {{"metric", monitor}, {"value", value}, {"epoch", epoch.at("epoch")}};
    }
  } catch (const ConfigError&) {  // of a version with other configurations
    return {};
  }
  return best;
}

/// The files below the folder by their names in it.
Json files_in(const fs::path& folder, const std::string& extension, std::size_t most) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(folder).string();
    if (entry->path().filename().string().starts_with(".")) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && name.ends_with(extension)) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names);
  if (names.size() > most) {
    const std::size_t more = names.size() - most;
    names.resize(most);
    names.push_back(fmt::format("... and {} more", more));
  }
  return names;
}

}  // namespace

Json report_of_run(const std::string& folder, const std::string& path) {
  std::string program;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.path().extension() == ".log" && program.empty())
      program = entry.path().stem().string();
  if (error) throw ConfigError(folder + ": no such folder");
  if (program.empty())
    throw ConfigError(folder + ": no run's folder, expected one that a program has written");
  Json report{{"folder", folder}, {"program", program}};
  if (const auto command = lines_of(path + "/.hydra/command.sh"); !command.empty())
    report["command"] = command.back();
  Json epochs = epochs_in(path + "/metrics.jsonl");
  if (Json best = best_of(epochs, path); !best.is_null()) report["best"] = std::move(best);
  if (epochs.size() > kMostEpochs)
    epochs.erase(epochs.begin(), epochs.end() - static_cast<std::ptrdiff_t>(kMostEpochs));
  if (!epochs.empty()) report["epochs"] = std::move(epochs);
  report["checkpoints"] = files_in(path, ".ckpt", kMostFiles);
  report["files"] = files_in(path, "", kMostFiles);
  const std::vector<std::string> log = lines_of(path + "/" + program + ".log");
  report["messages"] = std::vector<std::string>(
      log.end() - static_cast<std::ptrdiff_t>(std::min(kMostLines, log.size())), log.end());
  return report;
}

}  // namespace cytra::cli::mcp
