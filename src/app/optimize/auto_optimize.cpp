// `optimize --auto-optimize`: tries settings that change how fast the experiment trains, one after
// the other, and writes the best as a choice of the group performance.
#include <filesystem>

#include <fmt/format.h>

#include "app/optimize/kept_profile.h"
#include "app/optimize/search.h"
#include "app/plan/file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/version.h"
#include "config/composer.h"
#include "device/backend.h"
#include "perf/machine_load.h"

namespace cytra::app {
namespace {

using config::Node;

/// Tries a value in addition to the best so far. Returns whether it is taken.
bool try_value(const cli::Run& run, Search& search, const std::string& key, const Node& value) {
  const Tried tried = search.take(key, value);
  const bool is_taken = tried.verdict.is_gain;
  log::info("{}: {}{}", text_of(run, {{key, value}}), tried.text(), is_taken ? ", taken" : "");
  return is_taken;
}

/// Tries the settings step by step, keeping the better of two each time.
void try_settings(const Trials& trials, Search& search) {
  const auto try_all = [&](const std::string& key, const Facts& facts) {
    for (const Node& value : others_of(key, facts)) try_value(trials.run(), search, key, value);
  };
  const auto waits_for_data = [&] {
    const StepTimes& times = search.newest().times;
    return times.data_s > 0.05 * times.wall_s;
  };
  const auto find_loader = [&] {
    try_all(key::kWorkers, search.newest().facts);
    const Facts& facts = search.newest().facts;
    if (facts.num_workers > 0 && waits_for_data()) try_all(key::kPrefetch, facts);
  };
  find_loader();
  Facts facts = search.newest().facts;
  if (trials.value("model").is_map()) try_all(key::kLayout, facts);
  facts.best_batch_size = trials.best_batch_size(search.best());
  try_all(key::kBatch, facts);
  if (waits_for_data()) find_loader();  // a faster step may need more workers

  // The number of windows goes by the time of a validation, the only part of a training that has
  // windows: more of them, as long as that is a gain.
  const Node windows = trials.value(key::kWindows);
  if (windows.kind != config::Kind::integer || search.newest().validation_s == 0) return;
  facts.windows = windows.integer;
  facts.most_windows = 8 * windows.integer;
  for (const Node& count : others_of(key::kWindows, facts)) {
    if (count.integer < facts.windows || !try_value(trials.run(), search, key::kWindows, count))
      return;
  }
}

/// Compares all changes together with the unchanged experiment, and drops them where that is as
/// fast. Returns how many times as fast the result is.
double compare_all(const MakeRun& make, Search& search) {
  const Changes& best = search.best();
  if (best.empty()) return 1;
  const Tried all =
      search.compare({}, best, best.size() == 1 ? aim_of(best.front().first) : Aim::training);
  if (!all.fits) throw MemoryError("out of memory with settings that fitted before");
  if (all.verdict.is_gain) return all.verdict.ratio;
  log::info("all of them together: {}, which is no gain: they are left as they were", all.text());
  search = Search(make);
  search.run(Aim::training);
  return 1;
}

/// Returns the path of the file that gets the settings, a choice of the group performance, before
/// the long search. Throws: ConfigError when the file can't be written, or is the user's.
std::string settings_file(const cli::Run& run, const std::string& choice) {
  const std::string folder = run.config_folders.back() + "/performance";
  const std::string path = folder + "/" + choice + ".yaml";
  try {
    make_folders(folder);
    const AtomicFile probe(path);
  } catch (const ConfigError& error) {
    throw ConfigError(
        fmt::format("{}; --config-dir FOLDER names a folder of yours for it", error.what()));
  }
  if (std::filesystem::exists(path) && !read_file(path).starts_with(kProfileHead)) {
    throw ConfigError(
        fmt::format("{} was not written by --auto-optimize; rename it, or name another folder by "
                    "--config-dir FOLDER",
                    path));
  }
  return path;
}

/// Every setting that was searched for, with its best value.
Changes all_settings(const Trials& trials, const Changes& best) {
  Changes all;
  for (const char* key : {key::kBatch, key::kWorkers, key::kPrefetch, key::kLayout, key::kWindows})
    all.emplace_back(key, trials.value(key));
  for (const auto& [key, value] : best) all = with(std::move(all), key, value);
  std::erase_if(all, [](const Change& change) { return change.second.is_null(); });
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
Changes without_effect(const cli::Run& run, const std::string& choice, Changes settings) {
  const config::Composer composer(run.config_folders, "train");
  const Node root = composer.load("train", experiment_overrides(run, choice)).root;
  std::erase_if(settings, [&](const Change& change) {
    return config::equal(config::evaluate(root, change.first), change.second);
  });
  return settings;
}

int auto_optimize(cli::Run run, const TrainConfig& config) {
  watch_signals();
  constexpr double kRuns = 40;  // about so many runs: two for what is no gain, 2 * kPairs for a
                                // gain
  const Trials trials(std::move(run), config);
  const std::string choice = std::string("auto_") + device::backend_of(trials.device()).name;
  const std::string file = settings_file(trials.run(), choice);
  log::info("trying settings on {}, {:g} s each",
            device::describe(trials.device()),
            config.optimize.seconds / kRuns);
  perf::warn_if_busy("optimize");
  const perf::MachineLoad load;
  const MakeRun make = runs_of(trials, config.optimize.seconds / kRuns);
  Search search(make);
  search.run(Aim::training);
  try_settings(trials, search);
  const std::vector<Node> lower = others_of(key::kPrecision, search.newest().facts);
  Tried in_lower;
  if (!lower.empty())
    in_lower = search.compare(search.best(), with(search.best(), key::kPrecision, lower.front()));
  const double gain = compare_all(make, search);
  const double rate = search.newest().times.rate();
  const Changes settings = all_settings(trials, search.best());
  write_file(file, file_text(trials, choice, settings, rate, gain));
  load.report("optimize");

  Changes explicit_ones = without_effect(trials.run(), choice, settings);
  if (!explicit_ones.empty()) {
    log::info("the experiment or the command line sets {} otherwise, which wins: say so",
              text_of(trials.run(), explicit_ones));
  }
  const std::string again = train_command(trials.run(), explicit_ones, choice);
  if (search.best().empty()) {
    log::info("nothing that was tried is faster: the file holds the settings as they are");
  } else {
    log::info("{:.2f} times as fast; train with it:  {}", gain, again);
  }
  cli::Results results(trials.run().json);
  results.add("file", file);
  for (const auto& [key, value] : settings) results.add(key, value);
  results.add("images_per_second", rate);
  results.add("measured_gain", gain);
  if (in_lower.verdict.is_gain) {
    log::info(
        "not written to the file, because it changes results: {}={}, {:.2f} times as fast; the "
        "loss of the first steps differs by {:+.3f} %",
        key::kPrecision,
        lower.front().string,
        in_lower.verdict.ratio,
        100 * in_lower.loss_difference);
    results.add("precision", lower.front());
    results.add("precision_gain", in_lower.verdict.ratio);
    results.add("precision_loss_difference", in_lower.loss_difference);
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
