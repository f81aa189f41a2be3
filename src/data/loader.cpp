#include "data/loader.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>

#include "base/error.h"
#include "base/thread_pool.h"

namespace cytra::data {
namespace {

/// A batch being made: each image is one job; the job that finishes last collates.
struct Slot {
  std::vector<std::vector<Sample>> images;
  std::atomic<int64_t> missing{0};
  std::mutex mutex;
  std::condition_variable ready;
  bool done = false;
  std::exception_ptr error;
  Batch batch;
};

/// A loader thread computes by itself: several OpenMP teams at once would fight for the same cores.
void use_one_thread() {
  thread_local const bool once = [] {
    at::internal::lazy_init_num_threads();  // else the first parallel loop would undo the next line
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(once);
}

std::size_t bytes_of(const Sample& sample) {
  std::size_t bytes = 0;
  for (const auto& [key, tensor] : sample.tensors) bytes += tensor.nbytes();
  return bytes;
}

}  // namespace

struct DataLoader::Impl {
  explicit Impl(DataLoaderSpec given) : spec(std::move(given)), cache(spec.items.size()) {
    for (const auto& transform : spec.transforms) {
      if (random_from == spec.transforms.size() && !transform->is_random()) continue;
      random_from =
          std::min(random_from, static_cast<std::size_t>(&transform - spec.transforms.data()));
      draws *= transform->num_samples();
    }
    if (spec.options.num_workers > 0) pool = std::make_unique<ThreadPool>(spec.options.num_workers);
  }

  /// The image after the transforms before the first random one; kept while the budget lasts.
  Sample load(std::size_t index) {
    {
      const std::lock_guard lock(cache_mutex);
      if (cache[index]) return *cache[index];
    }
    Sample sample = spec.items[index];
    Rng unused(0);
    for (std::size_t t = 0; t < random_from; ++t) spec.transforms[t]->apply(sample, unused);
    const std::size_t bytes = bytes_of(sample);
    const std::lock_guard lock(cache_mutex);
    if (cached_bytes + bytes <= static_cast<std::size_t>(spec.options.ram_cache_gb * 1e9)) {
      cached_bytes += bytes;
      cache[index] = sample;
    }
    return sample;
  }

  std::vector<Sample> draw(std::size_t index, int64_t at_epoch) {
    const Sample image = load(index);
    std::vector<Sample> samples;
    for (int64_t draw = 0; draw < draws; ++draw) {
      Sample sample =
          image;  // tensors are shared: transforms replace them, they never write into them
      Rng rng(spec.seed + 1,
              static_cast<uint64_t>(at_epoch),
              index * static_cast<uint64_t>(draws) + static_cast<uint64_t>(draw));
      for (std::size_t t = random_from; t < spec.transforms.size(); ++t)
        spec.transforms[t]->apply(sample, rng);
      samples.push_back(std::move(sample));
    }
    return samples;
  }

  /// One job: image `position` of a slot; the last one makes the batch.
  void work(Slot& slot, std::size_t position, std::size_t index, int64_t at_epoch) {
    std::exception_ptr error;
    try {
      slot.images[position] = draw(index, at_epoch);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(slot.mutex);
    if (error && !slot.error) slot.error = error;
    if (--slot.missing > 0) return;
    try {
      std::vector<Sample> samples;
      for (auto& image : slot.images) {
        std::move(image.begin(), image.end(), std::back_inserter(samples));
      }
      if (!slot.error) slot.batch = collate(std::move(samples), spec.pin);
    } catch (...) {
      slot.error = std::current_exception();
    }
    slot.done = true;
    slot.ready.notify_all();
  }

  void post(int64_t number) {
    const int64_t begin = number * spec.options.batch_size;
    const int64_t end =
        std::min<int64_t>(begin + spec.options.batch_size, static_cast<int64_t>(order.size()));
    auto slot = std::make_shared<Slot>();
    slot->images.resize(static_cast<std::size_t>(end - begin));
    slot->missing = end - begin;
    for (int64_t i = begin; i < end; ++i) {
      auto job = [this,
                  slot,
                  position = static_cast<std::size_t>(i - begin),
                  index = order[static_cast<std::size_t>(i)],
                  at_epoch = epoch] { work(*slot, position, index, at_epoch); };
      if (pool) {
        pool->post([job] {
          use_one_thread();
          job();
        });
      } else {
        job();
      }
    }
    slots.push_back(std::move(slot));
  }

  int64_t batches() const {
    const auto items = static_cast<int64_t>(spec.items.size());
    return spec.options.drop_last ? items / spec.options.batch_size
                                  : (items + spec.options.batch_size - 1) / spec.options.batch_size;
  }

  DataLoaderSpec spec;
  std::size_t random_from = spec.transforms.size();  // the first random transform
  int64_t draws = 1, epoch = 0, posted = 0;
  std::vector<std::size_t> order;
  std::deque<std::shared_ptr<Slot>> slots;
  std::mutex cache_mutex;
  std::vector<std::optional<Sample>> cache;
  std::size_t cached_bytes = 0;
  std::unique_ptr<ThreadPool> pool;  // last: its threads use the rest
};

DataLoader::DataLoader(DataLoaderSpec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}
DataLoader::~DataLoader() = default;

int64_t DataLoader::size() const {
  return impl_->batches();
}

void DataLoader::start_epoch(int64_t epoch, int64_t first) {
  impl_->slots.clear();
  impl_->epoch = epoch;
  impl_->posted = first;
  impl_->order.resize(impl_->spec.items.size());
  std::iota(impl_->order.begin(), impl_->order.end(), std::size_t{0});
  if (impl_->spec.shuffle) {  // Fisher-Yates
    Rng rng(impl_->spec.seed, static_cast<uint64_t>(epoch));
    for (std::size_t i = impl_->order.size(); i > 1; --i)
      std::swap(impl_->order[i - 1], impl_->order[rng.below(i)]);
  }
}

std::optional<Batch> DataLoader::next() {
  const LoaderOptions& options = impl_->spec.options;
  const int64_t ahead = impl_->pool ? options.prefetch_factor * options.num_workers : 1;
  while (impl_->posted < size() && static_cast<int64_t>(impl_->slots.size()) < ahead)
    impl_->post(impl_->posted++);
  if (impl_->slots.empty()) return std::nullopt;
  const std::shared_ptr<Slot> slot = impl_->slots.front();
  impl_->slots.pop_front();
  std::unique_lock lock(slot->mutex);
  slot->ready.wait(lock, [&] { return slot->done; });
  if (slot->error) std::rethrow_exception(slot->error);
  return std::move(slot->batch);
}

Batch collate(std::vector<Sample> samples, bool pin) {
  Batch batch;
  for (const auto& [key, first] : samples.front().tensors) {
    std::vector<at::Tensor> tensors;
    for (const Sample& sample : samples) {
      const auto place = sample.tensors.find(key);
      if (place == sample.tensors.end() || place->second.sizes() != first.sizes()) {
        throw DataError(
            fmt::format("{}: '{}' has another shape ({}) than {} ({}) in the same batch; crop to "
                        "one size or set data.batch_size=1",
                        sample.id,
                        key,
                        place == sample.tensors.end()
                            ? "none"
                            : fmt::format("{}", fmt::join(place->second.sizes(), "x")),
                        samples.front().id,
                        fmt::join(first.sizes(), "x")));
      }
      tensors.push_back(place->second);
    }
    at::Tensor stacked =
        tensors.size() == 1 ? tensors[0].unsqueeze(0).contiguous() : at::stack(tensors);
    batch.tensors[key] = pin ? stacked.pin_memory() : stacked;
  }
  for (Sample& sample : samples) {
    batch.ids.push_back(std::move(sample.id));
    batch.geometries.push_back(sample.geometry);
  }
  return batch;
}

}  // namespace cytra::data
