#include "app/setup/train_data.h"

#include <fmt/format.h>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/strings.h"
#include "data/datamodules/folds.h"
#include "data/survey/check_targets.h"
#include "device/backend.h"
#include "nn/weights.h"
#include "tasks/image_task.h"
#include "training/batch_size.h"

namespace cytra::app {
namespace {

using data::Split;

/// Makes a loader. `limit`: of its batches.
data::DataLoader make_loader(data::DataLoaderSpec spec,
                             Split split,
                             const training::Amount& limit,
                             const std::shared_ptr<data::CacheManager>& cache) {
  log::info("{}: {} images", data::name_of(split), spec.items.size());
  spec.cache = cache;
  const std::string key =
      fmt::format("trainer.limit_{}_batches", split == Split::valid ? "val" : data::name_of(split));
  spec.limit = [limit, key](int64_t batches) { return limit.of(batches, key); };
  return data::DataLoader(std::move(spec));
}

/// How training images are loaded. `overfits`: the same batches in the same order, epoch by epoch.
/// `batches`: those of an epoch, as DataLoaderSpec's.
data::DataLoaderSpec train_spec(const Setup& setup,
                                const data::LoaderOptions& options,
                                bool overfits = false,
                                int64_t batches = 0) {
  data::DataLoaderSpec spec = loader_spec(setup, Split::train);
  spec.options = options;
  spec.shuffle = spec.shuffle && !overfits;
  if (!overfits) spec.batches = batches;
  return spec;
}

/// The data module's options, with a number in place of data.batch_size=AUTO.
data::LoaderOptions options_of(const Setup& setup,
                               const std::shared_ptr<data::CacheManager>& cache,
                               const std::string& checkpoint) {
  data::LoaderOptions options = setup.data->loader();
  options.num_workers = options.workers(setup.place.local_size);
  if (options.batch_size > 0) {
    if (options.max_memory_mb)
      log::warn("data.max_memory_mb={}: no effect, data.batch_size={} is no AUTO",
                *options.max_memory_mb,
                options.batch_size);
    return options;
  }
  if (!checkpoint.empty())
    options.batch_size = nn::checkpoint_config(checkpoint).get<int64_t>("data.batch_size", 0);
  if (options.batch_size > 0) return options;
  data::LoaderOptions trial = options;
  trial.batch_size = 1;
  trial.num_workers = 0;
  data::DataLoader loader =
      make_loader(train_spec(setup, trial), Split::train, training::Amount{1, 0}, cache);
  loader.start_epoch(0);
  const std::optional<data::Batch> one = loader.next();
  const auto images = static_cast<int64_t>(setup.data->items(Split::train).size());
  std::optional<int64_t> budget;
  if (options.max_memory_mb) budget = *options.max_memory_mb * 1'000'000;
  options.batch_size =
      training::find_batch_size(*setup.task, one.value(), setup.precision, images, budget);
  return options;
}

/// The decoders that follow from some batches of the training's images.
std::map<std::string, config::Node> decoders_for(const Setup& setup,
                                                 const data::LoaderOptions& options,
                                                 const std::shared_ptr<data::CacheManager>& cache) {
  auto* const task = dynamic_cast<tasks::ImageTask*>(setup.task.get());
  if (task == nullptr) return {};
  const auto decoders =
      task->fit_decoders([&](const std::function<void(const data::Batch&)>& look) {
        data::DataLoaderSpec spec = train_spec(setup, options);
        spec.cache = cache;
        spec.rank = 0;  // the first process decides for all
        data::DataLoader loader(std::move(spec));
        loader.start_epoch(0);
        for (int64_t count = 0; count < tasks::kBatchesToFit; ++count) {
          const std::optional<data::Batch> batch = loader.next();
          if (!batch) break;
          look(*batch);
        }
      });
  for (const auto& [head, decoder] : decoders)
    log::info("decoder{}: {}", head.empty() ? "" : " of " + head, config::to_json(decoder));
  return decoders;
}

/// How validation images are loaded. Throws: DataError for an image that is also used for
/// training.
data::DataLoaderSpec valid_spec(const Setup& setup, const std::vector<data::Sample>& trained) {
  data::DataLoaderSpec spec = loader_spec(setup, Split::valid);
  const auto* parted = dynamic_cast<const data::Parted*>(setup.data.get());
  if (parted != nullptr) parted->expect_parts(trained, spec.items);
  return spec;
}

/// How test images are loaded. Throws: ConfigError where they lack a target that those of training
/// have.
data::DataLoaderSpec test_spec(const Setup& setup, const std::vector<data::Sample>& trained) {
  data::DataLoaderSpec spec = loader_spec(setup, Split::test);
  for (const data::TargetMeaning& target : setup.task->target_meanings()) {
    if (trained.empty() || trained.front().sources.count(target.key) == 0) continue;
    std::vector<std::string> without;
    for (const data::Sample& item : spec.items)
      if (item.sources.count(target.key) == 0) without.push_back(item.id);
    const bool may_skip = spec.options.on_error == "skip" && without.size() < spec.items.size();
    if (without.empty() || may_skip) continue;
    throw ConfigError(
        "test=true: {} of {} images of the test have no {}, as {}: without it nothing can be "
        "measured; expected one for each, or test=false",
        without.size(),
        spec.items.size(),
        target.key,
        without.front());
  }
  return spec;
}

}  // namespace

data::DataLoaderSpec loader_spec(const Setup& setup, Split split) {
  data::DataLoaderSpec spec = data::loader_spec(*setup.data, split);
  const bool takes_colours = data::take_colours(spec.transforms);
  for (data::Sample& item : spec.items) {
    item.image = setup.task->x_key();
    item.channels = takes_colours ? 0 : setup.task->model().in_channels();
  }
  const auto last =
      split == Split::train ? setup.task->sample_transform() : setup.task->validation_transform();
  if (last) spec.transforms.push_back(last);
  spec.seed = setup.seed;
  spec.options.num_workers = spec.options.workers(setup.place.local_size);
  spec.pin = device::pins_memory(setup.device) && spec.options.pin_memory;
  spec.channels_last = setup.task->model().channels_last;
  spec.rank = setup.place.rank;
  spec.world_size = setup.place.size;
  spec.pad = split == Split::train;  // equally many steps, but each result once
  return spec;
}

Loaders::Loaders(const TrainConfig& config, const Setup& setup, const std::string& checkpoint)
    : cache(data::make_cache(setup.data->loader())),
      options(options_of(setup, cache, checkpoint)),
      decoders(decoders_for(setup, options, cache)),
      train(make_loader(train_spec(setup,
                                   options,
                                   /*overfits=*/!config.trainer.overfit_batches.is_none(),
                                   config.trainer.steps_per_epoch.value_or(0) *
                                       config.trainer.accumulate_grad_batches),
                        Split::train,
                        config.trainer.limit_train_batches,
                        cache)),
      valid(config.trainer.limit_val_batches.is_none()
                ? data::DataLoader({})
                : make_loader(valid_spec(setup, train.items()),
                              Split::valid,
                              config.trainer.limit_val_batches,
                              cache)),
      test(config.test ? make_loader(test_spec(setup, train.items()),
                                     Split::test,
                                     config.trainer.limit_test_batches,
                                     cache)
                       : data::DataLoader({})) {}

data::Survey survey_of(const data::DataModule& module, data::Trial trial) {
  std::optional<Progress> progress;
  return data::survey(
      module,
      module.loader().workers(),
      [&](Split split, int64_t done, int64_t all) {
        if (!progress) progress.emplace(fmt::format("reading {}", data::name_of(split)), all);
        progress->update(done);
        if (done < all) return;
        progress->finish();
        progress.reset();
      },
      std::move(trial));
}

void report_data(const data::Timing& timing, const Loaders& loaders, c10::Device device) {
  std::map<std::string, std::string> broken = loaders.train.stats().broken;
  broken.merge(loaders.valid.stats().broken);
  if (!broken.empty()) {
    log::warn("{} images could not be loaded and were {}:",
              broken.size(),
              loaders.options.on_error == "skip" ? "left out" : "replaced");
    for (const auto& [id, why] : broken) log::warn("  {}", why);
  }
  data::CacheManager::Stats cache;
  if (loaders.cache) cache = loaders.cache->stats();
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
      timing, loaders.options, cache, available_processors(), device::is_accelerator(device));
  if (!line.empty()) log::info("{}", line);
}

}  // namespace cytra::app
