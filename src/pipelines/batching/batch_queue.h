#pragma once
// Which requests share a batch, and when it is closed. It has no threads and no clock: the caller
// gives the time.
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipelines/batching/batching.h"

namespace cytra::pipelines {

/// The times that batches of images of one shape take, by their number of images.
class BatchCosts {
 public:
  /// Adds a measured time of a batch of that size; the mean of the size forgets: a fifth of it is
  /// new.
  void record(int64_t images, double seconds) {
    const auto [known, is_new] = seconds_.emplace(images, seconds);
    if (!is_new) known->second += 0.2 * (seconds - known->second);
  }
  /// Sets what was measured before all requests, replacing what is known.
  void set(const std::map<int64_t, double>& seconds) { seconds_ = seconds; }
  /// The expected seconds: between known sizes by a straight line, above them in proportion, below
  /// them as the smallest. 0: nothing is known.
  double expected(int64_t images) const {
    if (seconds_.empty()) return 0;
    const auto above = seconds_.lower_bound(images);
    if (above == seconds_.end()) {
      const auto& [most, seconds] = *seconds_.rbegin();
      return seconds * static_cast<double>(images) / static_cast<double>(most);
    }
    if (above->first == images || above == seconds_.begin()) return above->second;
    const auto below = std::prev(above);
    const double share = static_cast<double>(images - below->first) /
                         static_cast<double>(above->first - below->first);
    return below->second + share * (above->second - below->second);
  }
  bool is_known() const { return !seconds_.empty(); }

 private:
  std::map<int64_t, double> seconds_;
};

/// Some images of one shape, whatever they are.
struct BatchRequest {
  virtual ~BatchRequest() = default;
  /// The answer is there. Either this or fail() is called, once; neither may throw.
  virtual void succeed() = 0;
  virtual void fail(std::exception_ptr error) = 0;

  std::string bucket;  // requests of one bucket share batches
  int64_t images = 1, bytes = 0;
  BatchTime deadline = kNoDeadline;

  // The state of the request, for BatchQueue and Batcher.
  BatchTime arrival{};
  int64_t taken = 0, computed = 0;  // images
  bool is_waiting = false, is_finished = false;
};

/// Images of a request that are computed together.
struct BatchSlice {
  std::shared_ptr<BatchRequest> request;
  int64_t begin = 0, count = 0;
};
struct Batch {
  std::string bucket;
  int64_t images = 0;
  std::vector<BatchSlice> slices;
};

/// A batch is closed, for an idle model, when it is full; when its oldest request would else miss
/// its deadline, or arrival + max_latency, by what computing is expected to take; or when waiting
/// for the next request is not expected to pay: when that makes the latencies of all of them longer
/// in sum. Requests are taken in their order, and are split only where they are larger than a
/// batch.
class BatchQueue {
 public:
  explicit BatchQueue(const BatchingOptions& options) : options_(options) {}

  /// "" where there is room, else why there is none.
  std::string what_is_full(const BatchRequest& request) const;
  /// No request of that size will ever find room.
  bool is_too_large(const BatchRequest& request) const;
  void add(std::shared_ptr<BatchRequest> request, BatchTime now);
  /// Takes a request out of the queue.
  void remove(BatchRequest& request);
  /// What to do next: a batch to compute at once, or the time to ask again if no request comes
  /// until then (kNoDeadline: never).
  struct Next {
    std::optional<Batch> batch;
    BatchTime wake = kNoDeadline;
  };
  /// `expects_more`: requests may still come.
  Next next(BatchTime now, bool expects_more = true);
  bool is_empty() const { return requests_ == 0; }

  void record(const std::string& bucket, int64_t images, double seconds);
  /// Takes the seconds by size that were measured before: from now on a batch of the best size is
  /// full.
  void warm(const std::string& bucket, const std::map<int64_t, double>& seconds);
  /// Images of a full batch.
  int64_t full_size(const std::string& bucket) const;

 private:
  struct Bucket {
    std::deque<std::shared_ptr<BatchRequest>> waiting;
    BatchCosts costs;
    int64_t full = 0;  // 0: max_batch_size
    // The arrival of its last request, and the usual gaps.
    BatchTime last_arrival{};
    double gap_s = 0, images = 0;
  };
  int64_t full_of(const Bucket& bucket) const;
  /// The batch that would be closed now. `is_full`: no further request can change it.
  Batch form(const Bucket& bucket, bool& is_full) const;
  BatchTime due(const Bucket& bucket, const Batch& batch, BatchTime now) const;
  void take(Bucket& bucket, const Batch& batch);
  void forget_idle();

  const BatchingOptions options_;
  std::map<std::string, Bucket> buckets_;
  int64_t requests_ = 0, bytes_ = 0;  // that wait
};

}  // namespace cytra::pipelines
