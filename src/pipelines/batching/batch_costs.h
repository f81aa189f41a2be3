#pragma once
#include <cstdint>
#include <iterator>
#include <map>

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

}  // namespace cytra::pipelines
