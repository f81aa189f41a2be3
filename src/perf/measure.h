#pragma once
// How Cytra measures: the times of a piece of work.
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

#include "perf/compare.h"

namespace cytra::perf {

/// How often work is done: `timed` runs, and more of them, up to `most`, until they have taken
/// `enough_s` together.
struct Repeats {
  int64_t warmup = 3, timed = 10;
  double enough_s = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
};

struct Times {
  std::vector<double> ms;  // of each timed run, sorted
  double cpu_ms = 0;       // of all threads, the mean of a run
  double at_share(double share) const;
  double median() const;
  double mean() const;
  /// Seconds of the fastest run, which is the one that nothing disturbed.
  double best_s() const { return 1e-3 * ms.front(); }
  /// Where the median of ever more runs lies with 95 % confidence: two of the times, by the sign
  /// test, which supposes nothing about how times are spread. None of fewer than 6 runs.
  std::optional<std::pair<double, double>> interval() const;
};

/// Runs `work`, waiting for the device before the first run and after each.
Times measure(const std::function<void()>& work, const Repeats& repeats, c10::Device device);

}  // namespace cytra::perf
