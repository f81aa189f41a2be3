#pragma once
#include <cstdint>
#include <map>

namespace cytra::pipelines {

/// The times that batches of images of one shape take, by their number of images.
class BatchCosts {
 public:
  /// Adds a measured time of a batch of that size; the mean of the size forgets: a fifth of it is
  /// new.
  void record(int64_t images, double seconds);
  /// Sets what was measured before all requests, replacing what is known.
  void set(const std::map<int64_t, double>& seconds) { seconds_ = seconds; }
  /// The expected seconds: between known sizes by a straight line, above them in proportion, below
  /// them as the smallest. 0: nothing is known.
  double expected(int64_t images) const;
  bool is_known() const { return !seconds_.empty(); }

 private:
  std::map<int64_t, double> seconds_;
};

}  // namespace cytra::pipelines
