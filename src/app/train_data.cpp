#include "app/train_data.h"

#include <map>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/node.h"
#include "config/run_config.h"
#include "config/schema.h"
#include "nn/weights.h"
#include "training/batch_size.h"
#include "training/checkpoint.h"

namespace cytra::app {

using config::Node;

std::map<std::string, int64_t> expected_channels(const Node& task) {
  const Node* key = task.find("x_key");
  const Node* channels = task.find("model.in_channels");
  if (key == nullptr || channels == nullptr || key->kind != config::Kind::string ||
      channels->kind != config::Kind::integer)
    return {};
  return {{key->string, channels->integer}};
}

data::DataLoader make_loader(const data::DataModule& module,
                             data::Split split,
                             const data::LoaderOptions& options,
                             const LoaderSettings& settings,
                             const training::Amount& limit,
                             bool overfits) {
  data::DataLoaderSpec spec = data::loader_spec(module, split);
  if (settings.last) spec.transforms.push_back(settings.last);
  if (split == data::Split::train) spec.options = options;
  spec.seed = settings.seed;
  spec.pin = settings.pin && spec.options.pin_memory;
  spec.channels_last = settings.channels_last;
  spec.cache = settings.cache;
  spec.channels = settings.channels;
  spec.rank = settings.rank;
  spec.world_size = settings.processes;
  spec.pad = split == data::Split::train;  // equally many steps, but each result once
  spec.shuffle = spec.shuffle && !overfits;
  log::info("{}: {} images", data::name_of(split), spec.items.size());
  const std::string key = fmt::format("trainer.limit_{}_batches",
                                      split == data::Split::valid ? "val" : data::name_of(split));
  spec.limit = [limit, key](int64_t batches) { return limit.of(batches, key); };
  return data::DataLoader(std::move(spec));
}

int64_t choose_batch_size(const data::DataModule& module,
                          const LoaderSettings& settings,
                          training::Task& task,
                          const training::Precision& precision,
                          const std::string& checkpoint) {
  if (!checkpoint.empty()) {
    const Node before = nn::checkpoint_config(checkpoint);
    if (before.get<int64_t>("data.batch_size", 0) > 0)
      return before.get<int64_t>("data.batch_size");
  }
  data::LoaderOptions options = module.loader();
  options.batch_size = 1;
  options.num_workers = 0;
  data::DataLoader loader = make_loader(module, data::Split::train, options, settings, {1, 0});
  loader.start_epoch(0);
  const std::optional<data::Batch> one = loader.next();
  const auto images = static_cast<int64_t>(module.items(data::Split::train).size());
  return training::find_batch_size(task, one.value(), precision, images);
}

std::string checkpoint_of(const std::string& ckpt_path, bool autoresume, const cli::Run& run) {
  const bool is_named = ckpt_path == "last" || ckpt_path == "best";
  if (!is_named && (!ckpt_path.empty() || !autoresume)) return ckpt_path;
  const std::string output = config::output_dir(run.composed);
  if (!is_named) training::expect_ended(output);
  const std::string found = training::find_checkpoint(is_named ? ckpt_path : "last", output);
  if (found.empty() && is_named) {
    throw ConfigError(fmt::format(
        "checkpoint.ckpt_path={}: no checkpoint of an earlier run with this name (looked for {})",
        ckpt_path,
        output + "/checkpoints/*.ckpt"));
  }
  return found;
}

void fit_position(training::TrainState& state,
                  const std::string& checkpoint,
                  int64_t batch_size,
                  int64_t processes,
                  const config::Node& config) {
  const Node before = nn::checkpoint_config(checkpoint);
  const auto was_seed = before.get<int64_t>("seed", 0), seed = config.get<int64_t>("seed", 0);
  if (was_seed != seed) {
    log::warn("{}: trained with seed {}, now {}: images come in another order",
              checkpoint,
              was_seed,
              seed);
  }
  const auto was = before.get<std::string>("optimizer._target_", ""),
             now = config.get<std::string>("optimizer._target_", "");
  if (config::own_name(was) != config::own_name(now)) {
    log::warn("{}: trained with {}, now {}, which takes over what is kept under the same names",
              checkpoint,
              was,
              now);
  }
  const int64_t size = before.get<int64_t>("data.batch_size", 1);
  const int64_t before_all = size * state.processes, now_all = batch_size * processes;
  if (state.batch == 0 || before_all == now_all) return;
  const int64_t images = state.batch * before_all;
  state.batch = images / now_all;
  const auto several = [](int64_t count) {
    return count == 1 ? "" : fmt::format(" in {} processes", count);
  };
  log::warn(
      "{}: after {} images of epoch {} with data.batch_size={}{}, now {}{}: {} images come again",
      checkpoint,
      images,
      state.epoch,
      size,
      several(state.processes),
      batch_size,
      several(processes),
      images - state.batch * now_all);
}

void report_data(const data::Timing& timing,
                 const data::DataLoader& train,
                 const data::DataLoader& valid,
                 const LoaderSettings& settings,
                 const data::LoaderOptions& options) {
  std::map<std::string, std::string> broken = train.stats().broken;
  broken.merge(valid.stats().broken);
  if (!broken.empty()) {
    log::warn("{} images could not be loaded and were {}:",
              broken.size(),
              options.on_error == "skip" ? "left out" : "replaced");
    for (const auto& [id, why] : broken) log::warn("  {}", why);
  }
  data::CacheManager::Stats cache;
  if (settings.cache) cache = settings.cache->stats();
  const int64_t asked = cache.ram_hits + cache.disk_hits + cache.misses;
  if (asked > 0) {
    log::info("cache: {} of {} images from memory ({}), {} from disk, {} made",
              cache.ram_hits,
              asked,
              format_bytes(static_cast<double>(cache.ram_bytes)),
              cache.disk_hits,
              cache.misses);
  }
  const std::string line = data::verdict(
      timing, options, cache, std::thread::hardware_concurrency(), /*is_on_gpu=*/settings.pin);
  if (!line.empty()) log::info("{}", line);
}

}  // namespace cytra::app
