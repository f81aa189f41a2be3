#include "app/optimize/kept_profile.h"

#include <filesystem>

#include <fmt/format.h>

#include "app/optimize/measure_training.h"
#include "app/optimize/try_changes.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/composer.h"
#include "device/error.h"
#include "device/fast_precision.h"
#include "perf/measure.h"

namespace cytra::app {
namespace {

using config::Node;

struct Profile {
  std::string choice;  // "auto_cpu"; "": none of --auto-optimize is chosen
  std::string text;
};

Profile profile_of(const cli::Run& run) {
  constexpr std::string_view kGroup = "performance/";
  for (const config::IncludedFile& file : run.files) {
    if (!starts_with(file.path, kGroup)) continue;
    for (const std::string& folder : run.config_folders) {
      const std::string path = fmt::format("{}/{}.yaml", folder, file.path);
      std::error_code error;
      if (!std::filesystem::exists(path, error)) continue;
      std::string text = read_file(path);
      if (starts_with(text, kProfileHead)) return {file.path.substr(kGroup.size()), text};
      break;  // the first that has it is taken
    }
  }
  return {};
}

void add_leaves(const Node& node, const std::string& key, std::vector<std::string>& leaves) {
  if (!node.is_map()) return leaves.push_back(key);
  for (const auto& [name, below] : node.map)
    add_leaves(below, key.empty() ? name : key + "." + name, leaves);
}

/// The values that the file changes, as they are without it. What the experiment or the command
/// line sets does not count.
Changes values_without(const cli::Run& run, const Profile& profile) {
  const config::Composer composer(run.config_folders, "train");
  const Node other = composer.load("train", experiment_overrides(run, "default")).root;
  std::vector<std::string> keys;
  add_leaves(config::parse_yaml(profile.text, profile.choice), "", keys);
  Changes changes;
  for (const std::string& key : keys) {
    try {
      Node value = config::evaluate(other, key);
      if (!config::equal(config::evaluate(run.composed, key), value))
        changes.emplace_back(key, std::move(value));
    } catch (const ConfigError&) {  // the key does not exist without the file
      continue;
    }
  }
  return changes;
}

double image_count(const data::Batch& batch) {
  return batch.tensors.empty() ? 1 : static_cast<double>(batch.tensors.begin()->second.size(0));
}

/// Compares the time of an image, or of a whole validation, before and after the changes.
perf::Verdict time_both(const TrainConfig& before,
                        const TrainConfig& after,
                        bool is_validation,
                        c10::Device device,
                        const MakePass& make) {
  const auto pass = [&](const TrainConfig& config) -> TimedPass {
    const FirstBatches batches(config, device, is_validation);
    if (is_validation && !batches.validation) return [] { return 0.0; };
    const data::Batch& batch = is_validation ? *batches.validation : *batches.training;
    return [work = make(config, batch, is_validation),
            images = is_validation ? 1 : image_count(batch)] { return work() / images; };
  };
  return perf::time_again(pass(before), pass(after));
}

}  // namespace

TrainConfig with_profile_that_holds(cli::Run& run,
                                    TrainConfig config,
                                    c10::Device device,
                                    MakePass make) {
  const Profile profile = profile_of(run);
  if (profile.choice.empty() || config.data.get<std::string>("batch_size", "") == "AUTO")
    return config;
  const Changes changes = values_without(run, profile);
  bool trains_otherwise = false, validates_otherwise = false;
  for (const auto& [key, value] : changes) {
    const bool is_of_windows = starts_with(key, "task.inference_args.");
    const bool is_of_loader = starts_with(key, "data.") && key != "data.batch_size";
    validates_otherwise = validates_otherwise || is_of_windows;
    trains_otherwise = trains_otherwise || !(is_of_windows || is_of_loader);
  }
  if (!trains_otherwise && !validates_otherwise) return config;
  cli::Run other;
  TrainConfig plain = with_changes(run, changes, other);
  plain.trainer.precision = device::precision_on(plain.trainer.precision, device);
  if (plain.data.get<std::string>("batch_size", "") == "AUTO") return config;
  if (!make) make = real_passes(device);
  std::string reason;
  const auto measured = device::if_it_fits([&] {
    for (const bool is_validation : {false, true}) {
      if (!(is_validation ? validates_otherwise : trains_otherwise)) continue;
      const perf::Verdict again = time_both(plain, config, is_validation, device, make);
      if (!perf::holds(again)) reason = again.text() + " here and now";
    }
    return true;
  });
  if (!measured) reason = "does not fit into memory now";
  if (reason.empty()) return config;
  log::warn(
      "performance={} is dropped: {}; taken in its place: {} (optimize --auto-optimize measures "
      "anew)",
      profile.choice,
      reason,
      text_of(run, changes));
  run = std::move(other);
  return plain;
}

}  // namespace cytra::app
