#include "app/benchmark/measure.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/stopwatch.h"
#include "device/device.h"

namespace cytra::app {

double Times::at_share(double share) const {
  return ms[static_cast<std::size_t>(share * static_cast<double>(ms.size() - 1) + 0.5)];
}

double Times::median() const {
  return (ms[(ms.size() - 1) / 2] + ms[ms.size() / 2]) / 2;
}

std::optional<std::pair<double, double>> Times::interval() const {
  const auto ranks = median_ranks(ms.size());
  if (!ranks) return std::nullopt;
  return std::make_pair(ms[ranks->first], ms[ranks->second]);
}

std::optional<std::pair<std::size_t, std::size_t>> median_ranks(std::size_t count) {
  // How many of the values lie below the median is binomial with 1/2.
  const auto n = static_cast<double>(count);
  double below = 0;  // the probability of at most `rank` values
  std::size_t rank = 0;
  for (; rank < count; ++rank) {
    const auto k = static_cast<double>(rank);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                      n * std::log(2.0));
    if (below > 0.025) break;
  }
  if (rank == 0) return std::nullopt;
  return std::make_pair(rank - 1, count - rank);
}

Times measure(const std::function<void()>& work, const Repeats& repeats, c10::Device device) {
  Times times;
  std::clock_t cpu_begin = 0;
  for (int64_t i = -repeats.warmup; i < repeats.timed; ++i) {
    if (i == 0) cpu_begin = std::clock();
    const Stopwatch stopwatch;
    work();
    device::synchronize(device);
    if (i >= 0) times.ms.push_back(1e3 * stopwatch.seconds());
  }
  times.cpu_ms = 1e3 * static_cast<double>(std::clock() - cpu_begin) /
                 static_cast<double>(CLOCKS_PER_SEC * repeats.timed);
  std::sort(times.ms.begin(), times.ms.end());
  return times;
}

}  // namespace cytra::app
