#include "base/timers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/table.h"

namespace cytra::timers {
namespace {

constexpr int kBinsPerOctave = 16;          // a bin's ends are 4.4 % apart
constexpr int kBins = 44 * kBinsPerOctave;  // up to 2^44 ns: 5 hours

int bin_of(int64_t ns) {
  const double place = std::log2(static_cast<double>(std::max<int64_t>(ns, 1))) * kBinsPerOctave;
  return std::min(static_cast<int>(place), kBins - 1);
}

}  // namespace

struct Timer {
  std::mutex mutex;
  int64_t count = 0, total_ns = 0, min_ns = 0, max_ns = 0;
  std::array<int64_t, kBins> bins{};

  void add(int64_t ns) {
    const std::lock_guard lock(mutex);
    min_ns = count == 0 ? ns : std::min(min_ns, ns);
    max_ns = std::max(max_ns, ns);
    count += 1;
    total_ns += ns;
    bins[static_cast<std::size_t>(bin_of(ns))] += 1;
  }
  /// The middle of the bin that holds the value with this share below it.
  double quantile_s(double share) const {
    const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(count)));
    int64_t below = 0;
    int bin = 0;
    while (bin < kBins - 1 && (below += bins[static_cast<std::size_t>(bin)]) < rank) ++bin;
    const double ns = std::exp2((bin + 0.5) / kBinsPerOctave);
    return 1e-9 * std::clamp(ns, static_cast<double>(min_ns), static_cast<double>(max_ns));
  }
};

namespace {

/// The timers of this process; they are never removed, as scopes point to them.
struct AllTimers {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Timer>> by_name;
};
AllTimers& all_timers() {
  static AllTimers& all = *new AllTimers;  // threads may outlive main()
  return all;
}

Timer& timer_of(const char* name) {
  const std::lock_guard lock(all_timers().mutex);
  std::unique_ptr<Timer>& timer = all_timers().by_name[name];
  if (!timer) timer = std::make_unique<Timer>();
  return *timer;
}

}  // namespace

void enable(bool is_on) {
  on = is_on;
}

std::map<std::string, Statistics> statistics() {
  std::map<std::string, Statistics> all;
  const std::lock_guard lock(all_timers().mutex);
  for (const auto& [name, timer] : all_timers().by_name) {
    const std::lock_guard own(timer->mutex);
    if (timer->count == 0) continue;
    const double total = 1e-9 * static_cast<double>(timer->total_ns);
    all[name] = {timer->count,
                 total,
                 total / static_cast<double>(timer->count),
                 timer->quantile_s(0.5),
                 timer->quantile_s(0.95),
                 1e-9 * static_cast<double>(timer->max_ns)};
  }
  return all;
}

std::map<std::string, Statistics> main_statistics() {
  auto all = statistics();
  double longest_s = 0;
  for (const auto& [name, times] : all) longest_s = std::max(longest_s, times.total_s);
  for (auto one = all.begin(); one != all.end();)
    one = one->second.total_s < 1e-3 * longest_s ? all.erase(one) : std::next(one);
  return all;
}

std::string table() {
  const auto all = main_statistics();
  if (all.empty()) return "";
  std::vector<std::pair<std::string, Statistics>> rows(all.begin(), all.end());
  std::ranges::stable_sort(
      rows, [](const auto& a, const auto& b) { return a.second.total_s > b.second.total_s; });
  std::vector<std::vector<std::string>> lines{
      {"Timer", "Count", "Total (s)", "Mean (ms)", "p50 (ms)", "p95 (ms)", "Max (ms)"}};
  for (const auto& [name, times] : rows) {
    const auto ms = [](double s) { return fmt::format("{:.4g}", 1e3 * s); };
    lines.push_back({name,
                     std::to_string(times.count),
                     fmt::format("{:.4g}", times.total_s),
                     ms(times.mean_s),
                     ms(times.p50_s),
                     ms(times.p95_s),
                     ms(times.max_s)});
  }
  return format_table(lines);
}

void clear() {
  const std::lock_guard lock(all_timers().mutex);
  for (const auto& [name, timer] : all_timers().by_name) {
    const std::lock_guard own(timer->mutex);
    timer->count = timer->total_ns = timer->min_ns = timer->max_ns = 0;
    timer->bins.fill(0);
  }
}

void add(const char* name, std::chrono::nanoseconds time) {
  if (are_on()) timer_of(name).add(time.count());
}

void Scope::begin(const char* name) {
  timer_ = &timer_of(name);
  begin_ = std::chrono::steady_clock::now();
}

void Scope::end() {
  timer_->add(std::chrono::duration_cast<std::chrono::nanoseconds>(
                  std::chrono::steady_clock::now() - begin_)
                  .count());
}

}  // namespace cytra::timers
