// The loader: one class with one lock.
#include "data/loader/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "config/checked.h"
#include "data/loader/pipeline.h"
#include "ops/compute_alone.h"

namespace cytra::data {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kShutdown{2};
constexpr std::chrono::milliseconds kListening{200},  // between two checks for a signal
    kPatience{1000}, kPatienceOfMany{5000};           // with a batch, once there was one
constexpr int kReplacements = 10;  // images tried in place of one that can't be loaded

LoaderOptions with_workers(LoaderOptions options) {
  options.num_workers = options.workers();
  return options;
}

/// The images of an epoch, and how often each came before.
struct Epoch {
  std::vector<std::size_t> order;
  std::vector<uint32_t> repeat;  // empty: no image comes twice
};

/// A batch that is being made. Shared::mutex guards everything, unless a comment says otherwise.
struct Slot {
  Slot(int64_t rows, const BatchLayout& layout, BatchMemory& memory)
      : builder(rows, layout, memory) {}
  int64_t epoch = 0, number = 0;      // set once
  std::size_t begin = 0, images = 0;  // set once: places in the epoch's order
  std::shared_ptr<const Epoch> plan;  // set once
  BatchBuilder builder;               // thread-safe by row
  std::size_t claimed = 0, missing = 0;
  std::size_t error_at = 0;
  std::exception_ptr error;
  Batch batch;  // when nothing is missing
};

/// The current work of a thread, for messages.
struct WorkerActivity {
  std::shared_ptr<Slot> slot;  // null: nothing
  std::size_t position = 0;
  Stopwatch stopwatch;
  CurrentTransform transform{nullptr};
};

struct Drawn {
  Sample sample;
  uint64_t key;
};

Collate collate_of(const std::string& name) {
  return name == "pad" ? Collate::pad : name == "list" ? Collate::list : Collate::stack;
}

}  // namespace

struct DataLoader::Shared {
  explicit Shared(DataLoaderSpec given);

  // ---- the work of a job, without the lock
  std::vector<Drawn> draw(std::size_t index, const Slot& slot, WorkerActivity& running) const;
  std::exception_ptr work(Slot& slot, WorkerActivity& running);
  void note(const std::string& id, const std::string& why);
  void end();
  // ---- with the lock
  void do_one(std::unique_lock<std::mutex>& lock, WorkerActivity& running);
  void post();
  void plan_epoch(int64_t number);
  void wait_for(std::unique_lock<std::mutex>& lock, const Slot& slot);
  std::string under_way(const Slot* slot) const;

  const LoaderOptions options;
  const uint64_t seed;
  const BatchTransforms batch_transforms;
  const Pipeline pipeline;
  SamplerSpec sampler;
  BatchLayout layout;
  int64_t batches = 0;
  std::size_t ahead = 1;
  std::unique_ptr<BatchMemory> memory;

  mutable std::mutex mutex;
  std::condition_variable work_there, ready, ended;
  bool stop = false, more = false;
  int64_t epoch = 0, posted_epoch = 0, posted = 0;
  std::shared_ptr<const Epoch> plan;
  std::deque<std::shared_ptr<Slot>> slots, unclaimed;
  int64_t delivered = 0;  // batches of this epoch
  LoaderStats stats;
  std::vector<WorkerActivity> running;
  std::size_t alive = 0;
  std::vector<std::thread> threads;
};

DataLoader::Shared::Shared(DataLoaderSpec given)
    : options(with_workers(config::checked(given.options, "data"))),
      seed(given.seed),
      batch_transforms(std::move(given.batch_transforms)),
      pipeline(std::move(given.items),
               std::move(given.transforms),
               std::move(given.cache),
               options.cache_dir.has_value()),
      layout{collate_of(options.collate), given.channels_last, given.pin},
      running(static_cast<std::size_t>(std::max<int64_t>(1, options.num_workers))) {
  sampler.items = pipeline.items().size();
  sampler.shuffle = given.shuffle;
  if (given.shuffle) sampler.weights = pipeline.weights();
  sampler.num_samples = options.num_samples.value_or(-1);
  sampler.replacement = options.replacement;
  sampler.rank = given.rank;
  sampler.world_size = given.world_size;
  sampler.pad = given.pad;
  sampler.drop = given.pad && options.drop_last;
  if (options.num_samples && given.shuffle && sampler.weights.empty())
    throw ConfigError("data.num_samples: the images have no weights, expected data.weight_column");
  if (given.batches > 0) sampler.images = given.batches * options.batch_size * given.world_size;
  check(sampler);
  const auto images = static_cast<int64_t>(count(sampler)), size = options.batch_size;
  if (size < 1) throw ConfigError("data.batch_size: AUTO is for `train`, expected a number");
  batches = options.drop_last ? images / size : (images + size - 1) / size;
  if (given.limit) batches = given.limit(batches);
  if (options.num_workers > 0)
    ahead = static_cast<std::size_t>(options.num_workers * options.prefetch_factor);
  memory = std::make_unique<BatchMemory>((ahead + 2) * 4);  // four images to a sample, as a rule
}

/// Makes all draws of an image.
std::vector<Drawn> DataLoader::Shared::draw(std::size_t index,
                                            const Slot& slot,
                                            WorkerActivity& at) const {
  const std::size_t place = slot.begin + at.position;
  const std::vector<uint32_t>& repeat = slot.plan->repeat;
  const uint64_t image = index + pipeline.items().size() * (repeat.empty() ? 0 : repeat[place]);
  Sample loaded = pipeline.load(index, at.transform);
  const int64_t draws = pipeline.draws();
  std::vector<Drawn> drawn;
  for (int64_t draw = 0; draw < draws; ++draw) {
    // tensors are shared: transforms replace them, they never write into them
    Sample sample = draw + 1 < draws ? loaded : std::move(loaded);
    sample.draw = draw;
    Rng rng(seed + 1,
            static_cast<uint64_t>(slot.epoch),
            image * static_cast<uint64_t>(draws) + static_cast<uint64_t>(draw));
    pipeline.transform(sample, rng, at.transform);
    drawn.push_back({std::move(sample), rng.next()});
  }
  return drawn;
}

void DataLoader::Shared::note(const std::string& id, const std::string& why) {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex);
    ++stats.failed;
    is_new = stats.broken.emplace(id, why).second;
  }
  if (is_new) log::warn("{}: {}", options.on_error == "skip" ? "left out" : "replaced", why);
}

/// Does one job: an image of a batch. Returns an error, or notes it when the run shall continue.
std::exception_ptr DataLoader::Shared::work(Slot& slot, WorkerActivity& at) {
  const std::size_t place = slot.begin + at.position;
  std::size_t index = slot.plan->order[place];
  Rng other(seed + 2, static_cast<uint64_t>(slot.epoch), place);
  std::vector<Drawn> drawn;
  for (int tried = 0; drawn.empty(); ++tried) {
    try {
      drawn = draw(index, slot, at);
    } catch (const std::bad_alloc&) {
      return std::make_exception_ptr(
          MemoryError(pipeline.items()[index].id + ": not enough memory"));
    } catch (const std::exception& error) {
      if (options.on_error == "fail") return std::current_exception();
      note(pipeline.items()[index].id, error.what());
      if (options.on_error == "skip" || tried == kReplacements) return nullptr;
      index = other.below(pipeline.items().size());
    }
  }
  try {  // on_error does not apply to images of different sizes, as it is unknown which one is
         // wrong
    int64_t row = static_cast<int64_t>(at.position) * pipeline.draws();
    for (Drawn& one : drawn) slot.builder.set(row++, std::move(one.sample), one.key);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void DataLoader::Shared::do_one(std::unique_lock<std::mutex>& lock, WorkerActivity& at) {
  const std::shared_ptr<Slot> slot = unclaimed.front();
  at.slot = slot;
  at.position = slot->claimed++;
  at.stopwatch = {};
  at.transform = nullptr;
  if (slot->claimed == slot->images) unclaimed.pop_front();
  lock.unlock();
  std::exception_ptr error = work(*slot, at);
  lock.lock();
  if (error && (!slot->error || at.position < slot->error_at)) {
    slot->error = error;
    slot->error_at = at.position;
  }
  ++stats.samples;
  if (slot->missing == 1 && !slot->error) {
    lock.unlock();
    try {
      slot->batch = slot->builder.finish();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) slot->error = error;
  }
  at.slot.reset();
  if (--slot->missing == 0) ready.notify_all();
}

void DataLoader::Shared::plan_epoch(int64_t number) {
  auto next = std::make_shared<Epoch>();
  next->order = order(sampler, seed, number);
  const bool repeats_images = !sampler.weights.empty() || sampler.world_size > 1 ||
                              sampler.images > static_cast<int64_t>(sampler.items);
  if (repeats_images) next->repeat = repeats(next->order);
  plan = std::move(next);
  posted_epoch = number;
}

/// Keeps `ahead` batches in work: of this epoch, then of the next.
void DataLoader::Shared::post() {
  bool has_posted = false;
  while (slots.size() < ahead) {
    if (posted >= batches) {
      if (!more || posted_epoch > epoch || batches == 0) break;
      plan_epoch(posted_epoch + 1);
      posted = 0;
    }
    const auto begin = static_cast<std::size_t>(posted * options.batch_size);
    const std::size_t images =
        std::min(static_cast<std::size_t>(options.batch_size), plan->order.size() - begin);
    auto slot =
        std::make_shared<Slot>(static_cast<int64_t>(images) * pipeline.draws(), layout, *memory);
    slot->epoch = posted_epoch;
    slot->number = posted++;
    slot->begin = begin;
    slot->images = slot->missing = images;
    slot->plan = plan;
    slots.push_back(slot);
    unclaimed.push_back(std::move(slot));
    has_posted = true;
  }
  if (has_posted) work_there.notify_all();
}

/// The images in work, "a.tif (LoadImaged, for 31 s), b.tif ...": of one batch, or of all.
std::string DataLoader::Shared::under_way(const Slot* slot) const {
  std::vector<std::string> texts;
  for (const WorkerActivity& at : running) {
    if (!at.slot || (slot != nullptr && at.slot.get() != slot)) continue;
    const Transform* transform = at.transform.load(std::memory_order_relaxed);
    texts.push_back(
        fmt::format("{} ({}, for {:.0f} s)",
                    pipeline.items()[at.slot->plan->order[at.slot->begin + at.position]].id,
                    transform == nullptr ? "cache" : transform->name,
                    at.stopwatch.seconds()));
  }
  return texts.empty() ? "images that no worker is free for" : join(texts, ", ");
}

void DataLoader::Shared::wait_for(std::unique_lock<std::mutex>& lock, const Slot& slot) {
  const auto begin = Clock::now();
  const Stopwatch stopwatch(begin);
  const auto after = [&](double seconds) {
    return begin +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  const auto is_done = [&] { return slot.missing == 0; };
  const auto waited = [&] {
    return fmt::format("waiting for {} since {:.0f} s", under_way(&slot), stopwatch.seconds());
  };
  // With several processes, the others wait for this one's batch, and lose more without it.
  const auto patience = sampler.world_size > 1 ? kPatienceOfMany : kPatience;
  Clock::time_point caught = Clock::time_point::max();
  const double limit = options.timeout;
  double warning = options.timeout_warning;
  while (!is_done()) {
    const bool is_last = limit > 0 && limit <= warning;
    const auto until = after(is_last ? limit : warning);
    if (ready.wait_until(lock, std::min(until, Clock::now() + kListening), is_done)) return;
    if (const int signal = signal_received(); signal != 0) {
      caught = std::min(caught, Clock::now());
      if (Clock::now() - caught >= patience)
        throw Interrupted("interrupted while " + waited(), signal_exit_code(signal));
    }
    if (Clock::now() < until) continue;
    if (is_last) throw DataError(waited() + ", expected it within data.timeout");
    log::warn("{}", waited());
    warning *= 2;
  }
}

void DataLoader::Shared::end() {
  std::unique_lock lock(mutex);
  stop = true;
  work_there.notify_all();
  if (!ended.wait_for(lock, kShutdown, [&] { return alive == 0; }))
    log::warn("left behind while loading {}", under_way(nullptr));
  const bool is_over = alive == 0;
  std::vector<std::thread> left = std::move(threads);
  lock.unlock();
  for (std::thread& thread : left) is_over ? thread.join() : thread.detach();
}

DataLoader::DataLoader(DataLoaderSpec spec) : shared_(std::make_shared<Shared>(std::move(spec))) {
  const auto work = [](const std::shared_ptr<Shared>& shared, std::size_t worker) {
    ops::compute_alone();  // several thread teams would compete for the same cores
    const at::AutoDispatchBelowADInplaceOrView no_gradients;
    std::unique_lock lock(shared->mutex);
    for (;;) {
      shared->work_there.wait(lock, [&] { return shared->stop || !shared->unclaimed.empty(); });
      if (shared->stop) break;
      shared->do_one(lock, shared->running[worker]);
    }
    --shared->alive;
    shared->ended.notify_all();
  };
  const auto workers = static_cast<std::size_t>(shared_->options.num_workers);
  try {
    for (std::size_t worker = 0; worker < workers; ++worker) {
      const std::lock_guard lock(shared_->mutex);
      shared_->threads.emplace_back(work, shared_, worker);
      ++shared_->alive;
    }
  } catch (...) {  // a thread can't be started: those that have begun end, too
    shared_->end();
    throw;
  }
}

DataLoader::DataLoader(DataLoader&&) noexcept = default;

DataLoader::~DataLoader() {
  if (shared_) shared_->end();
}

int64_t DataLoader::size() const {
  return shared_->batches;
}

int64_t DataLoader::rows_of_last() const {
  const auto images = static_cast<int64_t>(count(shared_->sampler));
  const int64_t size = shared_->options.batch_size;
  const int64_t last = shared_->batches * size <= images ? size : images % size;
  return last * shared_->pipeline.draws();
}

const std::vector<Sample>& DataLoader::items() const {
  return shared_->pipeline.items();
}

void DataLoader::start_epoch(int64_t epoch, int64_t first, bool more) {
  const std::lock_guard lock(shared_->mutex);
  Shared& all = *shared_;
  const bool is_there =
      !all.slots.empty() && all.slots.front()->epoch == epoch && all.slots.front()->number == first;
  if (!is_there) {
    all.slots.clear();
    all.unclaimed.clear();
    all.plan_epoch(epoch);
    all.posted = first;
  }
  all.epoch = epoch;
  all.more = more;
  all.delivered = 0;
  all.post();
}

std::optional<Batch> DataLoader::next() {
  Shared& all = *shared_;
  std::unique_lock lock(all.mutex);
  for (;;) {
    if (all.slots.empty() || all.slots.front()->epoch != all.epoch) {
      if (all.delivered > 0 || all.stats.broken.empty()) return std::nullopt;
      throw DataError("no image of the epoch could be loaded, expected one; the first: " +
                      all.stats.broken.begin()->second);
    }
    const std::shared_ptr<Slot> slot = all.slots.front();
    if (all.options.num_workers == 0) {
      while (slot->missing > 0) all.do_one(lock, all.running[0]);
    } else {
      all.wait_for(lock, *slot);
    }
    all.slots.pop_front();
    all.post();
    if (slot->error) std::rethrow_exception(slot->error);
    if (slot->batch.ids.empty()) continue;  // every image was left out
    ++all.delivered;
    slot->batch.number = slot->number;
    return std::move(slot->batch);
  }
}

bool DataLoader::is_ready() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->slots.empty() || shared_->slots.front()->missing == 0;
}

const BatchTransforms& DataLoader::batch_transforms() const {
  return shared_->batch_transforms;
}

LoaderStats DataLoader::stats() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->stats;
}

}  // namespace cytra::data
