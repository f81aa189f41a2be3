#include "pipelines/batching/batch_queue.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/compare.h"

namespace cytra::pipelines {
namespace {

constexpr std::size_t kIdleBuckets = 256;  // shapes whose costs are kept where no request waits

double batch_seconds(BatchClock::duration time) {
  return std::chrono::duration<double>(time).count();
}
BatchClock::duration batch_duration(double seconds) {
  return std::chrono::duration_cast<BatchClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

bool BatchQueue::is_too_large(const BatchRequest& request) const {
  return request.bytes > options_.max_queue_bytes;
}

std::string BatchQueue::what_is_full(const BatchRequest& request) const {
  if (is_too_large(request)) {
    return fmt::format("a request of {} bytes: at most {} may wait (max_queue_bytes)",
                       request.bytes,
                       options_.max_queue_bytes);
  }
  if (requests_ >= options_.max_queue_size) {
    return fmt::format("{} requests wait, at most {} may (max_queue_size); try again later",
                       requests_,
                       options_.max_queue_size);
  }
  if (bytes_ + request.bytes > options_.max_queue_bytes) {
    return fmt::format(
        "requests of {} bytes wait, and {} more are over {} (max_queue_bytes); try again later",
        bytes_,
        request.bytes,
        options_.max_queue_bytes);
  }
  return "";
}

void BatchQueue::add(std::shared_ptr<BatchRequest> request, BatchTime now) {
  if (buckets_.size() > kIdleBuckets) forget_idle();
  Bucket& bucket = buckets_[request->bucket];
  const auto images = static_cast<double>(request->images);
  if (bucket.last_arrival == BatchTime{}) {
    bucket.images = images;
  } else {
    const double gap = batch_seconds(now - bucket.last_arrival);
    bucket.gap_s = bucket.gap_s == 0 ? gap : bucket.gap_s + 0.2 * (gap - bucket.gap_s);
    bucket.images += 0.2 * (images - bucket.images);
  }
  bucket.last_arrival = now;
  request->arrival = now;
  request->is_waiting = true;
  requests_ += 1;
  bytes_ += request->bytes;
  bucket.waiting.push_back(std::move(request));
}

void BatchQueue::remove(BatchRequest& request) {
  if (!request.is_waiting) return;
  auto& waiting = buckets_[request.bucket].waiting;
  const auto found =
      std::ranges::find_if(waiting, [&](const auto& other) { return other.get() == &request; });
  request.is_waiting = false;
  requests_ -= 1;
  bytes_ -= request.bytes;
  waiting.erase(found);
}

int64_t BatchQueue::full_of(const Bucket& bucket) const {
  return bucket.full == 0 ? options_.max_batch_size : bucket.full;
}

int64_t BatchQueue::full_size(const std::string& bucket) const {
  const auto found = buckets_.find(bucket);
  return found == buckets_.end() ? options_.max_batch_size : full_of(found->second);
}

Batch BatchQueue::form(const Bucket& bucket, bool& is_full) const {
  const int64_t full = full_of(bucket);
  Batch batch;
  batch.bucket = bucket.waiting.front()->bucket;
  is_full = true;
  for (const auto& request : bucket.waiting) {
    for (int64_t begin = request->taken; begin < request->images;) {
      const int64_t count = std::min(full, request->images - begin);
      if (batch.images + count > full) return batch;
      batch.slices.push_back({request, begin, count});
      batch.images += count;
      begin += count;
    }
  }
  is_full = batch.images == full;
  return batch;
}

BatchTime BatchQueue::due(const Bucket& bucket, const Batch& batch, BatchTime now) const {
  if (!bucket.costs.is_known() || bucket.gap_s <= 0) return now;
  const BatchTime arrival = bucket.last_arrival + batch_duration(bucket.gap_s);
  if (arrival <= now) return now;  // it is late: its time is not known
  const double more = bucket.images, own = static_cast<double>(batch.images);
  const int64_t together = batch.images + std::max<int64_t>(1, std::llround(more));
  if (together > full_of(bucket)) return now;
  const double wait = batch_seconds(arrival - now);
  const double alone_s = bucket.costs.expected(batch.images);
  const double both_s = bucket.costs.expected(together);
  const double rest_s = bucket.costs.expected(together - batch.images);
  // The latencies of all images from now on: of those that are here, and of those that will come.
  const double at_once = own * alone_s + more * (std::max(alone_s - wait, 0.0) + rest_s);
  const double later = own * (wait + both_s) + more * both_s;
  if (later >= at_once) return now;
  BatchTime close = arrival;
  for (const BatchSlice& slice : batch.slices) {
    const BatchTime latest = std::min(
        slice.request->deadline, slice.request->arrival + batch_duration(options_.max_latency));
    close = std::min(close, latest - batch_duration(both_s));
  }
  return close;
}

void BatchQueue::take(Bucket& bucket, const Batch& batch) {
  for (const BatchSlice& slice : batch.slices) slice.request->taken += slice.count;
  while (!bucket.waiting.empty() && bucket.waiting.front()->taken == bucket.waiting.front()->images)
    remove(*bucket.waiting.front());
}

BatchQueue::Next BatchQueue::next(BatchTime now, bool expects_more) {
  Next next;
  Bucket* oldest = nullptr;
  for (auto& [name, bucket] : buckets_) {
    if (bucket.waiting.empty()) continue;
    bool is_full = false;
    Batch batch = form(bucket, is_full);
    const BatchTime when = is_full || !expects_more ? now : due(bucket, batch, now);
    if (when > now) {
      next.wake = std::min(next.wake, when);
    } else if (oldest == nullptr ||
               bucket.waiting.front()->arrival < oldest->waiting.front()->arrival) {
      oldest = &bucket;
      next.batch = std::move(batch);
    }
  }
  if (oldest != nullptr) take(*oldest, *next.batch);
  return next;
}

void BatchQueue::record(const std::string& bucket, int64_t images, double seconds) {
  buckets_[bucket].costs.record(images, seconds);
}

void BatchQueue::warm(const std::string& bucket, const std::map<int64_t, double>& seconds) {
  Bucket& own = buckets_[bucket];
  own.costs.set(seconds);
  own.full = perf::smallest_that_pays(seconds);  // a larger one makes requests wait
}

/// Images may come in ever new shapes: what is kept for a shape is removed when it is idle.
void BatchQueue::forget_idle() {
  for (auto bucket = buckets_.begin(); bucket != buckets_.end();) {
    const bool is_idle = bucket->second.waiting.empty() && bucket->second.full == 0;
    bucket = is_idle ? buckets_.erase(bucket) : std::next(bucket);
  }
}

}  // namespace cytra::pipelines
