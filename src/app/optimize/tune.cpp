#include "app/optimize/tune.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/json.h"
#include "device/backend.h"
#include "device/device.h"
#include "device/fast_precision.h"
#include "inference/windows/windows.h"
#include "perf/machine_load.h"

namespace cytra::app {
namespace {

using config::Node;

constexpr const char* kTuning = "model.compile_mode=max-autotune:";

std::string texts_of(const Changes& changes) {
  return join(mapped(changes, [](const Change& change) { return text_of(change); }), " ");
}

/// The configuration with changes of the settings below.
TrainConfig changed(TrainConfig config, const Changes& changes) {
  for (const auto& [key, value] : changes) {
    if (key == key::kLayout) {
      config.task.find("model")->set("channels_last", value);
    } else if (key == key::kAlgorithms) {
      config.performance.enable_cudnn_benchmark = value.boolean;
    } else if (key == key::kThreads) {
      config.performance.num_threads = value.integer;
    } else {
      config.task.find("inference_args")->set("sw_batch_size", value);
    }
  }
  return config;
}

/// Whether there is a validation by windows, and the user has not set a number of them.
bool asks_for_windows(const TrainConfig& config) {
  const Node* count = config.task.find("inference_args.sw_batch_size");
  return count != nullptr && count->kind == config::Kind::integer &&
         count->integer == inference::SlidingWindowOptions().sw_batch_size && count->origin.file &&
         !count->is_set_by_user() && !config.trainer.limit_val_batches.is_none();
}

/// The settings that the configuration leaves open.
std::vector<std::string> open_keys(const TrainConfig& config, c10::Device device) {
  std::vector<std::string> keys;
  const Node* layout = config.task.find("model.channels_last");
  if (layout == nullptr || layout->is_null()) keys.emplace_back(key::kLayout);
  if (device::backend_of(device).traits.searches_algorithms &&
      !config.performance.enable_cudnn_benchmark && config.trainer.deterministic_mode == "false")
    keys.emplace_back(key::kAlgorithms);
  if (device.is_cpu() && config.performance.num_threads == 0) keys.emplace_back(key::kThreads);
  if (asks_for_windows(config)) keys.emplace_back(key::kWindows);
  return keys;
}

/// What a training is where nothing is said. No more windows are in a pass than the batch of the
/// validation has.
Facts facts_of(const TrainConfig& config, c10::Device device, const FirstBatches& batches) {
  constexpr int64_t kMost = 32;
  Facts facts;
  facts.channels_last =
      device.is_cpu() || device::uses_tensor_cores(config.trainer.precision, device);
  facts.threads = at::get_num_threads();
  if (!batches.validation) return facts;
  const auto& tensors = batches.validation->tensors;
  const auto images = tensors.find(config.task.get<std::string>("x_key"));
  if (images == tensors.end()) return facts;  // the images are a list
  const auto options =
      config::parse<inference::SlidingWindowOptions>(config.task.at("inference_args"));
  const at::IntArrayRef sizes = images->second.sizes();
  facts.windows = options.sw_batch_size;
  facts.most_windows = std::min(
      kMost, sizes[0] * inference::layout_windows(sizes.slice(2).vec(), options).windows());
  return facts;
}

/// Tries the values of a setting, in addition to the best so far.
void answer(const std::string& key, const Facts& facts, Search& search) {
  const Aim aim = aim_of(key);
  search.run(aim);
  Change winner(key, values_of(key, facts).front());
  double gain = 1;
  for (const Node& value : others_of(key, facts)) {
    const Tried tried = search.take(key, value);
    log::debug("{} {}: {}", kTuning, text_of({key, value}), tried.text());
    if (!tried.verdict.is_gain) continue;
    winner.second = value;
    gain *= tried.verdict.ratio;
  }
  const bool is_validation = aim == Aim::validation;
  const Figures& best = search.newest();
  log::info("{} {}: {:.3g} ms for {}, {}",
            kTuning,
            text_of(winner),
            1e3 * (is_validation ? best.validation_s : best.times.wall_s),
            is_validation ? "a validation" : "forward and backward pass",
            gain > 1 ? fmt::format("{:.2f} times as fast as before", gain)
                     : "and nothing that was tried is faster");
}

std::string tuned_file() {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/tuned.json";
}

/// Reads the kept choices: {"version": ..., key: [choices]}; empty where there is no file that
/// this program wrote.
Node read_kept(const std::string& path) {
  Node fresh = Node::make_map();
  fresh.set("version", Node::make_string(version()));
  try {
    const Node kept = config::parse_json(read_file(path), path);
    return kept.get<std::string>("version", "") == version() ? kept : fresh;
  } catch (const Error&) {  // none, or not ours: it is written anew
    return fresh;
  }
}

void keep(const std::string& path, Node kept, const std::string& key, const Changes& chosen) {
  Node texts = Node::make_list();
  for (const Change& change : chosen) texts.list.push_back(Node::make_string(text_of(change)));
  kept.set(key, std::move(texts));
  try {
    make_folders(path.substr(0, path.rfind('/')));
    write_file(path, config::to_json(kept));
  } catch (const Error& error) {
    log::debug("{} the choice is not kept: {}", kTuning, error.what());
  }
}

/// The choices that were kept, one for each key; empty where there are none, or for other keys.
Changes chosen_before(const Node* texts, const Changes& unchanged, const Facts& facts) {
  if (texts == nullptr || texts->list.size() != unchanged.size()) return {};
  Changes chosen;
  for (const auto& [key, now] : unchanged) {
    const std::string text = texts->list[chosen.size()].string;
    for (const Node& value : values_of(key, facts)) {
      if (text_of({key, value}) == text) chosen.emplace_back(key, value);
    }
  }
  return chosen.size() == unchanged.size() ? chosen : Changes();
}

}  // namespace

TrainConfig tuned(TrainConfig config, c10::Device device, MakePass make) {
  const Node* model = config.task.find("model");
  if (model == nullptr || !model->is_map() || !model->get<bool>("compile_model", false) ||
      model->get<std::string>("compile_mode", "default") != "max-autotune")
    return config;
  device::apply(config.performance, device);
  const std::vector<std::string> keys = open_keys(config, device);
  if (keys.empty() || config.data.get<std::string>("batch_size", "") == "AUTO") return config;
  const FirstBatches batches(config, device, /*with_validation=*/keys.back() == key::kWindows);
  const Facts facts = facts_of(config, device, batches);
  Changes unchanged;
  for (const std::string& open : keys) {
    const std::vector<Node> values = values_of(open, facts);
    if (values.size() > 1) unchanged.emplace_back(open, values.front());
  }
  if (unchanged.empty()) return config;
  const std::string path = tuned_file();
  const std::string key = fmt::format("{}; {}; {}; {}",
                                      device::describe(device),
                                      config.trainer.precision,
                                      batches.text(),
                                      config::to_json(config.task));
  const Node kept = read_kept(path);
  const Changes before = chosen_before(kept.find_direct(key), unchanged, facts);
  if (!make) make = real_passes(device);
  const auto make_run = [&](const Changes& changes, Aim aim) {
    return timed_run(make, changed(config, changes), batches, aim);
  };
  const perf::MachineLoad load;
  const std::string reason = before.empty() ? "" : why_dropped(make_run, unchanged, before);
  if (!before.empty() && reason.empty()) {
    log::info("{} {}, as kept in {}", kTuning, texts_of(before), path);
    return changed(config, before);
  }
  Search search(make_run, unchanged);
  for (const auto& [open, now] : unchanged) answer(open, facts, search);
  if (!reason.empty()) {
    log::info("{} the earlier choice is dropped ({}); chosen now: {}",
              kTuning,
              reason,
              texts_of(search.best()));
  }
  load.report("model.compile_mode=max-autotune");
  keep(path, kept, key, search.best());
  return changed(config, search.best());
}

}  // namespace cytra::app
