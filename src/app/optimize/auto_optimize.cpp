// `optimize --auto-optimize`: tries settings that change how fast the experiment trains, one after
// the other, and writes the best as a choice of the group performance.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "app/optimize/kept_profile.h"
#include "app/optimize/measure_training.h"
#include "app/optimize/try_changes.h"
#include "app/plan/file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/composer.h"
#include "device/backend.h"
#include "perf/machine_load.h"

namespace cytra::app {
namespace {

using config::Node;

constexpr const char *kBatch = "data.batch_size", *kWorkers = "data.num_workers",
                     *kPrefetch = "data.prefetch_factor", *kLayout = "model.channels_last",
                     *kWindows = "task.inference_args.sw_batch_size",
                     *kPrecision = "trainer.precision", *kLower = "bf16-mixed";

Changes with(Changes changes, const std::string& key, Node value) {
  const auto found = std::find_if(
      changes.begin(), changes.end(), [&](const auto& change) { return change.first == key; });
  if (found == changes.end()) {
    changes.emplace_back(key, std::move(value));
  } else {
    found->second = std::move(value);
  }
  return changes;
}

/// The search: settings that are changed step by step, keeping the better of two each time.
class Search {
 public:
  Search(const Trials& trials, double seconds)
      : trials_(trials),
        seconds_(seconds),
        newest_(trials.measure({}, {2 * seconds, false})),
        start_(newest_.facts) {}

  /// Returns whether the value is taken.
  bool try_value(const std::string& key, const Node& value, Aim aim = Aim::training) {
    const Changes after = with(best_, key, value);
    const std::string text = text_of(trials_.run(), {{key, value}});
    const std::optional<Tried> tried = try_changes(trials_, best_, after, seconds_, aim);
    if (!tried) {
      log::info("{}: does not fit into memory", text);
      return false;
    }
    const perf::Verdict& verdict = tried->verdict;
    log::info("{}: {}{}", text, verdict.text(), verdict.is_gain ? ", taken" : "");
    if (!verdict.is_gain) return false;
    best_ = after;
    newest_ = tried->measured;
    return true;
  }

  void find_batch_size() {
    const int64_t size = trials_.best_batch_size(best_);
    if (size > newest_.facts.batch_size) try_value(kBatch, Node::make_integer(size));
  }

  void find_loader() {
    std::set<int64_t, std::greater<>> numbers{1};
    for (const int64_t share : {1, 2, 4})
      numbers.insert(std::max<int64_t>(1, start_.cores / share));
    numbers.erase(newest_.facts.num_workers);
    for (const int64_t workers : numbers) try_value(kWorkers, Node::make_integer(workers));
    if (newest_.facts.num_workers > 0 && waits_for_data())
      try_value(kPrefetch, Node::make_integer(2 * newest_.facts.prefetch_factor));
  }
  bool waits_for_data() const { return newest_.times.data_s > 0.05 * newest_.times.wall_s; }

  void find_layout() {
    if (!trials_.value("model").is_map()) return;
    try_value(kLayout, Node::make_boolean(!start_.channels_last));
  }

  /// Chooses the number of windows by the time of a validation, the only part of a training that
  /// has windows.
  void find_windows() {
    const Node windows = trials_.value(kWindows);
    if (windows.kind != config::Kind::integer || newest_.validation_s == 0) return;
    for (int64_t size = 2 * windows.integer; size <= 8 * windows.integer; size *= 2) {
      if (!try_value(kWindows, Node::make_integer(size), Aim::validation)) break;
    }
  }

  /// Compares all changes together with the unchanged experiment, and drops them where that is as
  /// fast. Returns how many times as fast the result is.
  double compare() {
    if (best_.empty()) return 1;
    const bool is_validation_alone = best_.size() == 1 && best_.front().first == kWindows;
    const std::optional<Tried> tried = try_changes(
        trials_, {}, best_, seconds_, is_validation_alone ? Aim::validation : Aim::training);
    if (!tried) throw MemoryError("out of memory with settings that fitted before");
    newest_ = tried->measured;
    if (tried->verdict.is_gain) return tried->verdict.ratio;
    log::info("all of them together: {}, which is no gain: they are left as they were",
              tried->verdict.text());
    best_.clear();
    newest_ = trials_.measure({}, {2 * seconds_, false});
    return 1;
  }
  /// Tries a lower precision. None where it is lower already, or does not fit.
  std::optional<Tried> try_lower_precision() {
    if (start_.precision != "32" && start_.precision != "32-true") return std::nullopt;
    return try_changes(
        trials_, best_, with(best_, kPrecision, Node::make_string(kLower)), seconds_);
  }
  const Changes& best() const { return best_; }
  double rate() const { return newest_.times.rate(); }

 private:
  const Trials& trials_;
  double seconds_;
  Trials::Figures newest_;  // of best_
  Facts start_;
  Changes best_;
};

/// The file that gets the settings: a choice of the group performance.
struct SettingsFile {
  std::string path, choice;
};

/// Finds the file's place before the long search. Throws: ConfigError when the file can't be
/// written, or is the user's.
SettingsFile settings_file(const cli::Run& run, c10::Device device) {
  SettingsFile file;
  file.choice = std::string("auto_") + device::backend_of(device).name;
  const std::string folder = run.config_folders.back() + "/performance";
  file.path = folder + "/" + file.choice + ".yaml";
  try {
    make_folders(folder);
    const AtomicFile probe(file.path);
  } catch (const ConfigError& error) {
    throw ConfigError(
        fmt::format("{}; --config-dir FOLDER names a folder of yours for it", error.what()));
  }
  if (std::filesystem::exists(file.path) && !starts_with(read_file(file.path), kProfileHead)) {
    throw ConfigError(
        fmt::format("{} was not written by --auto-optimize; rename it, or name another folder by "
                    "--config-dir FOLDER",
                    file.path));
  }
  return file;
}

/// Every setting that was searched for, with its best value.
Changes all_settings(const Trials& trials, const Changes& best) {
  Changes all;
  for (const char* key : {kBatch, kWorkers, kPrefetch, kLayout, kWindows}) {
    Node value = trials.value(key);
    for (const auto& [changed, to] : best) {
      if (changed == key) value = to;
    }
    if (!value.is_null()) all.emplace_back(key, std::move(value));
  }
  return all;
}

std::string file_text(const Trials& trials,
                      const std::string& choice,
                      const Changes& settings,
                      double rate,
                      double gain) {
  ExperimentFile file;
  for (const auto& [key, value] : trials.value("performance").map)
    file.set("performance." + key, value);
  for (const auto& [key, value] : settings) file.set(key, value);
  return fmt::format(
      "{}, cytra {}:\n#   {}\n"
      "# On {}: {:.1f} images/s, {:.2f} times those before.\n"
      "# performance={} takes it. What an experiment or the command line sets wins over it.\n{}",
      kProfileHead,
      version(),
      trials.run().command_line,
      device::describe(trials.device()),
      rate,
      gain,
      choice,
      file.text());
}

/// The settings that have no effect in the file, as the experiment or the command line sets them
/// otherwise.
Changes without_effect(const cli::Run& run, const std::string& choice, const Changes& settings) {
  const config::Composer composer(run.config_folders, "train");
  const Node root = composer.load("train", experiment_overrides(run, choice)).root;
  Changes others;
  for (const auto& [key, value] : settings) {
    if (!config::equal(config::evaluate(root, key), value)) others.emplace_back(key, value);
  }
  return others;
}

int auto_optimize(cli::Run run, const TrainConfig& config) {
  watch_signals();
  constexpr double kRuns = 40;  // about so many runs: two for what is no gain, 2 * kPairs for a
                                // gain
  const Trials trials(std::move(run), config);
  const SettingsFile file = settings_file(trials.run(), trials.device());
  log::info("trying settings on {}, {:g} s each",
            device::describe(trials.device()),
            config.optimize.seconds / kRuns);
  perf::warn_if_busy("optimize");
  const perf::MachineLoad load;
  Search search(trials, config.optimize.seconds / kRuns);
  search.find_loader();
  search.find_layout();
  search.find_batch_size();
  if (search.waits_for_data()) search.find_loader();  // a faster step may need more workers
  search.find_windows();
  const std::optional<Tried> lower = search.try_lower_precision();
  const double gain = search.compare();
  const Changes settings = all_settings(trials, search.best());
  write_file(file.path, file_text(trials, file.choice, settings, search.rate(), gain));
  load.report("optimize");

  Changes explicit_ones = without_effect(trials.run(), file.choice, settings);
  if (!explicit_ones.empty()) {
    log::info("the experiment or the command line sets {} otherwise, which wins: say so",
              text_of(trials.run(), explicit_ones));
  }
  const std::string again = train_command(trials.run(), explicit_ones, file.choice);
  if (search.best().empty()) {
    log::info("nothing that was tried is faster: the file holds the settings as they are");
  } else {
    log::info("{:.2f} times as fast; train with it:  {}", gain, again);
  }
  cli::Results results(trials.run().json);
  results.add("file", file.path);
  for (const auto& [key, value] : settings) results.add(key, value);
  results.add("images_per_second", search.rate());
  results.add("measured_gain", gain);
  if (lower && lower->verdict.is_gain) {
    log::info(
        "not written to the file, because it changes results: {}={}, {:.2f} times as fast; the "
        "loss of the first steps differs by {:+.3f} %",
        kPrecision,
        kLower,
        lower->verdict.ratio,
        100 * lower->loss_difference);
    results.add("precision", kLower);
    results.add("precision_gain", lower->verdict.ratio);
    results.add("precision_loss_difference", lower->loss_difference);
  }
  results.add("command", again);
  results.print();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_auto_optimize(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::auto_optimize);
}
