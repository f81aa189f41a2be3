#include "perf/measure.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include "base/stopwatch.h"
#include "device/device.h"

namespace cytra::perf {
double Times::at_share(double share) const {
  return ms[static_cast<std::size_t>(share * static_cast<double>(ms.size() - 1) + 0.5)];
}

double Times::median() const {
  return (ms[(ms.size() - 1) / 2] + ms[ms.size() / 2]) / 2;
}

double Times::mean() const {
  return std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
}

std::optional<std::pair<double, double>> Times::interval() const {
  const auto ranks = median_ranks(ms.size());
  if (!ranks) return std::nullopt;
  return std::make_pair(ms[ranks->first], ms[ranks->second]);
}

Times measure(const std::function<void()>& work, const Repeats& repeats, c10::Device device) {
  for (int64_t i = 0; i < repeats.warmup; ++i) work();
  device::synchronize(device);
  Times times;
  const std::clock_t cpu_begin = std::clock();
  double all = 0;
  for (int64_t runs = 0; runs < repeats.timed || (runs < repeats.most && all < repeats.enough_s);
       ++runs) {
    const Stopwatch stopwatch;
    work();
    device::synchronize(device);
    const double seconds = stopwatch.seconds();
    times.ms.push_back(1e3 * seconds);
    all += seconds;
  }
  times.cpu_ms = 1e3 * static_cast<double>(std::clock() - cpu_begin) /
                 (static_cast<double>(CLOCKS_PER_SEC) * static_cast<double>(times.ms.size()));
  std::ranges::sort(times.ms);
  return times;
}

}  // namespace cytra::perf
