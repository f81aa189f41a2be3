#include "app/optimize/try_changes.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/overrides/overrides.h"
#include "device/error.h"

namespace cytra::app {
namespace {

using config::Node;

double mean_of(const std::vector<double>& values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

std::vector<std::string> overrides_of(const cli::Run& run, const Changes& changes) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : changes) {
    const bool is_new = run.composed.find(key) == nullptr;
    overrides.push_back(
        fmt::format("{}{}={}", is_new ? "++" : "", key, config::override_text(value)));
  }
  return overrides;
}

}  // namespace

std::optional<Tried> try_changes(
    const Trials& trials, const Changes& before, const Changes& after, double seconds, Aim aim) {
  Tried tried;
  Trials::Figures &now = tried.measured, was;
  const auto time = [&](const Trials::Figures& measured) {  // seconds of an image; 0: none was
                                                            // timed
    if (aim == Aim::validation) return measured.validation_s;
    return measured.times.rate() > 0 ? 1 / measured.times.rate() : 0;
  };
  bool is_after = false;
  try {
    tried.verdict = perf::time_in_turn(
        [&] {
          is_after = false;
          return time(was = trials.measure(before, {seconds, false}));
        },
        [&] {
          is_after = true;
          return time(now = trials.measure(after, {seconds, false}));
        });
  } catch (const std::exception& error) {
    if (!is_after || !device::is_out_of_memory(error)) throw;
    return std::nullopt;
  }
  const std::size_t steps = std::min(now.losses.size(), was.losses.size());
  if (now.facts.batch_size == was.facts.batch_size && steps > 0)
    tried.loss_difference = mean_of(now.losses, steps) / mean_of(was.losses, steps) - 1;
  return tried;
}

std::string text_of(const cli::Run& run, const Changes& changes) {
  return join(overrides_of(run, changes), " ");
}

std::vector<std::string> experiment_overrides(const cli::Run& run, const std::string& performance) {
  std::vector<std::string> words;
  for (const std::string& word : run.overrides) {
    const bool is_replaced = !performance.empty() && starts_with(word, "performance=");
    if (!starts_with(word, "optimize.") && !is_replaced) words.push_back(word);
  }
  if (!performance.empty()) words.push_back("performance=" + performance);
  return words;
}

std::string train_command(const cli::Run& run,
                          const Changes& changes,
                          const std::string& performance) {
  std::vector<std::string> words;
  std::error_code error;
  if (!std::filesystem::equivalent(run.config_folders.front(), config_folder(), error))
    words = {"--config-path", run.config_folders.front()};
  if (run.config_folders.size() > 1)
    words.insert(words.end(), {"--config-dir", run.config_folders[1]});
  for (const auto& more : {experiment_overrides(run, performance), overrides_of(run, changes)})
    words.insert(words.end(), more.begin(), more.end());
  return command("train", words);
}

}  // namespace cytra::app
