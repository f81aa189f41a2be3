#pragma once
#include <algorithm>
#include <cstdio>
#include <ctime>

namespace cytra::bench {

/// The time of the processor that this process has taken.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Prints the least of three times of some work, as a member of a JSON object, and `end`.
void time_work(const char* name, const char* end, const auto& work) {
  double best = 1e300;
  for (int i = 0; i < 3; ++i) {
    const double begin = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - begin);
  }
  std::printf("\"%s\": %.4f%s", name, best, end);
}

}  // namespace cytra::bench
