#pragma once
// Times of a piece of work, and how sure they are.
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

namespace cytra::app {

struct Repeats {
  int64_t warmup = 3, timed = 10;
};

struct Times {
  std::vector<double> ms;  // of each timed run, sorted
  double cpu_ms = 0;       // of all threads, the mean of a run
  double at_share(double share) const;
  double median() const;
  /// Where the median of ever more runs lies with 95 % confidence: two of the times, by the sign
  /// test, which supposes nothing about how times are spread. None of fewer than 6 runs.
  std::optional<std::pair<double, double>> interval() const;
};

/// The ranks, from 0, of interval()'s ends among `count` sorted values.
std::optional<std::pair<std::size_t, std::size_t>> median_ranks(std::size_t count);

/// Runs `work`, waiting for the device each time.
Times measure(const std::function<void()>& work, const Repeats& repeats, c10::Device device);

}  // namespace cytra::app
