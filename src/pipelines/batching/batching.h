#pragma once
// The options and figures of a batching service. It uses no torch.
#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

namespace cytra::pipelines {

using BatchClock = std::chrono::steady_clock;
using BatchTime = BatchClock::time_point;
inline constexpr BatchTime kNoDeadline = BatchTime::max();

struct BatchingOptions {
  int64_t max_batch_size = 32;  // images
  /// Seconds from a request's arrival to its answer; batches are closed in time for it, but,
  /// unlike a deadline, it is not guaranteed.
  double max_latency = 0.1;
  int64_t max_queue_size = 1024;                  // requests that wait
  int64_t max_queue_bytes = int64_t{1024} << 20;  // of their images
  /// Whether submit() waits where there is no room, instead of throwing at once.
  bool waits_for_room = false;
  /// Images of several sizes share batches: each side is filled with zeros, at its end, up to a
  /// multiple of this, and the answer is cropped. 0: images of one size alone share a batch.
  int64_t pad_to = 0;
  /// Throws: ConfigError.
  void check() const;
};

/// How a request ended.
enum class Outcome { ok, rejected, timed_out, cancelled, failed };
const char* name_of(Outcome outcome);

/// Why there is no answer. `outcome`: rejected (no room, or the service takes no more), timed_out,
/// cancelled. A request that failed gets the model's own exception.
struct RequestError : std::runtime_error {
  RequestError(Outcome how, const std::string& what) : std::runtime_error(what), outcome(how) {}
  Outcome outcome;
};

/// A histogram of values above 0, exact to 2.2 %: they lie in bins whose ends are 4.4 % apart.
class BatchHistogram {
 public:
  void add(double value);
  int64_t count() const { return count_; }
  double sum() const { return sum_; }
  /// The value with this share (0 to 1) below it; 0 without values.
  double quantile(double share) const;

 private:
  std::map<int, int64_t> bins_;
  int64_t count_ = 0;
  double sum_ = 0;
};

/// received = the sum of all outcomes + open, at any time.
struct BatchingFigures {
  int64_t received = 0, open = 0;
  std::map<Outcome, int64_t> outcomes;
  std::map<int64_t, int64_t> batches;     // number of images of a batch -> how many there were
  int64_t values = 0, padded_values = 0;  // that were computed, and those of them that pad_to added
  BatchHistogram queue_s;                 // of requests: until their first image is computed
  BatchHistogram compute_s;               // of batches
  BatchHistogram total_s;                 // of requests that were answered

  int64_t of(Outcome outcome) const;
  /// Images of a batch, the mean.
  double mean_batch() const;
  /// Prometheus' text format 0.0.4: cytra_requests_received_total, cytra_requests_open,
  /// cytra_requests_total by outcome, cytra_batch_size (a histogram), cytra_request_queue_seconds,
  /// cytra_batch_compute_seconds and cytra_request_seconds (summaries), cytra_padded_values_total.
  std::string prometheus() const;
};

}  // namespace cytra::pipelines
