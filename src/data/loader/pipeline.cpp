#include "data/loader/pipeline.h"

#include <algorithm>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/timers.h"
#include "base/version.h"
#include "data/loader/loader_options.h"
#include "data/sample/same_grid.h"
#include "io/fingerprint.h"

namespace cytra::data {
namespace {

template <class Error>
[[noreturn]] void throw_in(const Transform& transform, const Error& error) {
  throw Error(std::string(error.what()) + " (in " + transform.name + ")");
}

/// A name that distinguishes this pipeline from every other one of the process, in a cache that
/// they share. (An address may be reused.)
std::string serial() {
  static std::atomic<uint64_t> count{0};
  return std::to_string(count++);
}

}  // namespace

std::shared_ptr<CacheManager> make_cache(const LoaderOptions& options) {
  if (options.ram_cache_gb == 0 && !options.cache_dir) return nullptr;
  return std::make_shared<CacheManager>(CacheLimits{options.ram_cache_gb,
                                                    options.cache_dir.value_or(""),
                                                    options.disk_cache_gb,
                                                    options.cache_compression == "zstd"});
}

Pipeline::Pipeline(std::vector<Sample> items,
                   Transforms transforms,
                   std::shared_ptr<CacheManager> cache,
                   bool is_shared)
    : items_(std::move(items)),
      transforms_(std::move(transforms)),
      cache_(std::move(cache)),
      is_shared_(is_shared),
      random_from_(transforms_.size()),
      keys_(items_.size()) {
  std::string text = version();
  for (std::size_t t = 0; t < transforms_.size(); ++t) {
    const Transform& transform = *transforms_[t];
    if (random_from_ == transforms_.size() && transform.is_random()) random_from_ = t;
    if (t < random_from_) text += "\n" + transform.text;
    draws_ *= transform.num_samples();
  }
  prefix_ = is_shared_ ? io::fingerprint(text) : serial();
}

std::vector<double> Pipeline::weights() const {
  std::vector<double> weights;
  for (const Sample& item : items_) weights.push_back(item.weight);
  const bool are_equal = std::ranges::all_of(weights, [](double w) { return w == 1; });
  return are_equal ? std::vector<double>{} : weights;
}

void apply(const Transform& transform, Sample& sample, Rng& rng) {
  try {
    transform.apply(sample, rng);
  } catch (const DataError& error) {
    throw_in(transform, error);
  } catch (const ConfigError& error) {
    throw_in(transform, error);
  } catch (const IoError& error) {
    throw_in(transform, error);
  } catch (const c10::Error& error) {
    throw std::runtime_error(
        fmt::format("{}: {} (in {})", sample.id, error.what_without_backtrace(), transform.name));
  }
}

void Pipeline::apply(
    std::size_t from, std::size_t to, Sample& sample, Rng& rng, CurrentTransform& current) const {
  for (std::size_t t = from; t < to; ++t) {
    current.store(transforms_[t].get(), std::memory_order_relaxed);
    data::apply(*transforms_[t], sample, rng);
  }
}

/// The cache's key of an item. It is made once, as it looks at every file of a folder.
std::string Pipeline::key_of(std::size_t index) const {
  {
    const std::lock_guard lock(mutex_);
    if (!keys_[index].empty()) return keys_[index];
  }
  std::string key = make_key(index);
  const std::lock_guard lock(mutex_);
  return keys_[index] = std::move(key);
}

std::string Pipeline::make_key(std::size_t index) const {
  const Sample& item = items_[index];
  if (!is_shared_ || item.sources.empty()) return fmt::format("{}/{}", prefix_, index);
  std::string text = fmt::format(
      "{}\n{} {} {}", prefix_, item.image, static_cast<int>(item.on_mismatch), item.channels);
  if (item.fill_nan) text += fmt::format(" {}", *item.fill_nan);
  for (const auto& [name, cell] : item.columns) text += "\n" + name + "=" + cell;
  for (const auto& [key, source] : item.sources) {
    const io::Selection& chosen = source.selection;
    text += fmt::format("\n{} {} {} {} {}:{} {} {} {}",
                        key,
                        source.path,
                        content_stamp(io::file_of(source.path)),
                        chosen.scene,
                        chosen.level,
                        source.has_level,
                        chosen.timepoint,
                        chosen.axes,
                        source.time_is_channel);
    for (const int64_t channel : chosen.channels) text += fmt::format(" {}", channel);
    for (const std::string& path : source.more) text += " " + content_stamp(path);
  }
  return text;
}

Sample Pipeline::load(std::size_t index, CurrentTransform& current) const {
  const timers::Scope timed("data.load");
  Sample sample = items_[index];
  if (sample.sources.empty()) settle_grids(sample);  // images in memory
  if (random_from_ == 0) return sample;
  std::string key;
  if (cache_) {
    key = key_of(index);
    if (const auto kept = cache_->get(key)) {
      sample.tensors = kept->tensors;
      sample.geometries = kept->geometries;
      return sample;
    }
  }
  const bool has_file = !sample.sources.empty();
  Rng unused(0);
  apply(0, random_from_, sample, unused, current);
  if (cache_ && sample.unread.empty())
    sample.tensors = cache_->put(key, {sample.tensors, sample.geometries}, has_file)->tensors;
  return sample;
}

void Pipeline::transform(Sample& loaded, Rng& rng, CurrentTransform& current) const {
  const timers::Scope timed("data.transform");
  apply(random_from_, transforms_.size(), loaded, rng, current);
  while (!loaded.unread.empty()) loaded.stored(std::string(loaded.unread.begin()->first));
}

}  // namespace cytra::data
