#include "app/optimize/kept_profile.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/composer.h"
#include "config/keys.h"
#include "device/fast_precision.h"

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
    if (!file.path.starts_with(kGroup)) continue;
    for (const std::string& folder : run.config_folders) {
      const std::string path = fmt::format("{}/{}.yaml", folder, file.path);
      if (!path_exists(path)) continue;
      std::string text = read_file(path);
      if (text.starts_with(kProfileHead)) return {file.path.substr(kGroup.size()), text};
      break;  // the first that has it is taken
    }
  }
  return {};
}

/// The values that the file changes, as they are without it. What the experiment or the command
/// line sets does not count.
Changes values_without(const cli::Run& run, const Profile& profile) {
  const config::Composer composer(run.config_folders, "train");
  const Node other = composer.load("train", experiment_overrides(run, "default")).root;
  const Node file = config::parse_yaml(profile.text, profile.choice);
  config::Leaves leaves;
  config::add_leaves("", file, leaves);
  Changes changes;
  for (const auto& [key, ignored] : leaves) {
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

}  // namespace

TrainConfig with_profile_that_holds(cli::Run& run,
                                    TrainConfig config,
                                    c10::Device device,
                                    MakePass make) {
  const Profile profile = profile_of(run);
  if (profile.choice.empty() || config.data.get<std::string>("batch_size", "") == "AUTO")
    return config;
  const Changes changes = values_without(run, profile);
  cli::Run other;
  TrainConfig plain = with_changes(run, changes, other);
  plain.trainer.precision = device::precision_on(plain.trainer.precision, device);
  if (plain.data.get<std::string>("batch_size", "") == "AUTO") return config;
  if (!make) make = real_passes(device);
  const auto run_of = [&](const Changes& without, Aim aim) {
    const TrainConfig& one = without.empty() ? config : plain;
    return timed_run(make, one, FirstBatches(one, device, aim == Aim::validation), aim);
  };
  const std::string reason = why_dropped(run_of, changes, {});
  if (reason.empty()) return config;
  log::warn(
      "performance={} is dropped: {} here and now; taken in its place: {} (optimize "
      "--auto-optimize measures anew)",
      profile.choice,
      reason,
      text_of(run, changes));
  run = std::move(other);
  return plain;
}

}  // namespace cytra::app
