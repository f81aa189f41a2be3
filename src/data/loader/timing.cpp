#include "data/loader/timing.h"

#include <fmt/format.h>

#include "data/loader/loader_options.h"

namespace cytra::data {
namespace {

constexpr double kWaiting = 0.15;  // share of the time from which on loading is the bottleneck

std::string remedy(const LoaderOptions& options,
                   const CacheManager::Stats& cache,
                   int64_t cores,
                   bool is_on_gpu) {
  const int64_t asked = cache.ram_hits + cache.disk_hits + cache.misses;
  const double hits =
      asked == 0 ? 0
                 : 100.0 * static_cast<double>(asked - cache.misses) / static_cast<double>(asked);
  if (cache.is_full && !options.cache_dir) {
    return fmt::format(
        "raise data.ram_cache_gb (now {:g}; {:.0f} % of the images came from it) or "
        "set data.cache_dir",
        options.ram_cache_gb,
        hits);
  }
  if (options.num_workers < cores) {
    return fmt::format(
        "raise data.num_workers (now {}; this machine has {} cores)", options.num_workers, cores);
  }
  if (is_on_gpu) return "move random transforms to the GPU: data.transforms.batch";
  return "put what is not random first among the transforms, so that it is done once";
}

}  // namespace

std::string verdict(const Timing& timing,
                    const LoaderOptions& options,
                    const CacheManager::Stats& cache,
                    int64_t cores,
                    bool is_on_gpu) {
  if (timing.batches < 3) return "";
  const double share = timing.waited / (timing.waited + timing.computed);
  const bool is_data_bound = share >= kWaiting;
  return fmt::format(
      "{}: {:.0f} % of the training time went into waiting for images (data_time {:.2f} ms, "
      "step_time {:.2f} ms per batch); {}",
      is_data_bound ? "data-bound" : "compute-bound",
      100 * share,
      1e3 * timing.data_s(),
      1e3 * timing.step_s(),
      is_data_bound
          ? remedy(options, cache, cores, is_on_gpu)
          : "loading keeps up; benchmark_performance --compare-opts tells what shortens a step");
}

}  // namespace cytra::data
