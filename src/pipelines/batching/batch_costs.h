#pragma once
#include <cstdint>
#include <map>

namespace cytra::pipelines {

/// What batches of images of one shape take, by their number of images.
class BatchCosts {
 public:
  /// A batch of that size took that long. What is known of the size forgets: a fifth is new.
  void record(int64_t images, double seconds);
  /// Sets what was measured before all requests, replacing what is known.
  void set(const std::map<int64_t, double>& seconds) { seconds_ = seconds; }
  /// Seconds: between sizes that are known by a straight line, above them in proportion, below them
  /// as the smallest. 0: nothing is known.
  double expected(int64_t images) const;
  bool is_known() const { return !seconds_.empty(); }

 private:
  std::map<int64_t, double> seconds_;
};

}  // namespace cytra::pipelines
