#pragma once
// Times of named pieces of work, in all threads. Switched off, they cost a read of a flag;
// switched on, about 100 ns.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace cytra::timers {

struct Timer;
inline std::atomic<bool> on{false};

/// Switches timing on or off for scopes that begin from now on. Measured times stay.
void enable(bool is_on = true);
inline bool are_on() {
  return on.load(std::memory_order_relaxed);
}

/// Adds a time that was measured elsewhere; ignored while timing is off.
void add(const char* name, std::chrono::nanoseconds time);

/// Statistics of all times of a name. Quantiles are exact to 2.2 %: the times lie in bins.
struct Statistics {
  int64_t count = 0;
  double total_s = 0, mean_s = 0, p50_s = 0, p95_s = 0, max_s = 0;
};
std::map<std::string, Statistics> statistics();
/// The statistics of names that took at least a thousandth of the longest: most hooks of callbacks
/// do nothing.
std::map<std::string, Statistics> main_statistics();
/// main_statistics() as a table, the longest total first; "" when nothing was timed.
std::string table();
inline constexpr const char* kTextName = "times";  // loggers get the table under it
/// Forgets all measured times.
void clear();

/// Measures the time of its own life. Nested scopes, also of the same name, count each by itself.
class [[nodiscard]] Scope {
 public:
  explicit Scope(const char* name) {
    if (are_on()) begin(name);
  }
  ~Scope() {
    if (timer_ != nullptr) end();
  }
  Scope& operator=(Scope&&) = delete;

 private:
  void begin(const char* name);
  void end();
  Timer* timer_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace cytra::timers
