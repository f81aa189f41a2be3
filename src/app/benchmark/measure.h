#pragma once
// Times of a piece of work, and how certain they are.
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
  /// The 95 % confidence interval of the median: two of the measured times, by the sign test,
  /// which assumes no distribution of the times. None where there are fewer than 6 runs.
  std::optional<std::pair<double, double>> interval() const;
};

/// The ranks, from 0, of interval()'s ends among `count` sorted values.
std::optional<std::pair<std::size_t, std::size_t>> median_ranks(std::size_t count);

/// Times `work`, waiting for the device after each run.
Times measure(const std::function<void()>& work, const Repeats& repeats, c10::Device device);

}  // namespace cytra::app
