#pragma once
// Measures where the time of a training goes.
#include <cstdint>
#include <string>

#include "base/stopwatch.h"
#include "data/loader/cache.h"

namespace cytra::data {

struct LoaderOptions;

/// Sums over batches: seconds spent waiting for the loader, and on everything else.
struct Timing {
  double waited = 0, computed = 0;
  int64_t batches = 0;

  /// Adds a batch that took the time of `all`, of which it waited `waited_s`.
  void add(double waited_s, const Stopwatch& all) {
    waited += waited_s;
    computed += all.seconds() - waited_s;
    ++batches;
  }
  Timing since(const Timing& earlier) const {
    return {waited - earlier.waited, computed - earlier.computed, batches - earlier.batches};
  }
  double data_s() const { return batches == 0 ? 0 : waited / static_cast<double>(batches); }
  double data_share() const { return waited > 0 ? waited / (waited + computed) : 0; }
  double step_s() const { return batches == 0 ? 0 : computed / static_cast<double>(batches); }
};

/// A line that says whether the training is data-bound or compute-bound, and what to change.
/// `cores`: of the machine. "" for less than three batches.
std::string verdict(const Timing& timing,
                    const LoaderOptions& options,
                    const CacheManager::Stats& cache,
                    int64_t cores,
                    bool is_on_gpu);

}  // namespace cytra::data
