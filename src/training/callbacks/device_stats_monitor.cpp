// DeviceStatsMonitor: what the training takes of the machine. Follows
// lightning.pytorch.callbacks.DeviceStatsMonitor, with names of its own.
#include <chrono>
#include <ctime>

#include <ATen/ATen.h>

#include "base/memory.h"
#include "config/registry.h"
#include "nn/model.h"
#include "perf/device.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using Clock = std::chrono::steady_clock;

class DeviceStatsMonitor final : public Callback {
 public:
  struct Options {
    std::optional<bool> cpu_stats;
    template <class V>
    void visit(V& v) {
      v("cpu_stats", cpu_stats, "CPU and memory of the process; null or true: yes");
    }
  };
  explicit DeviceStatsMonitor(const Options& options) : options_(options) {}

  void on_fit_start(Context& context) override {
    device_ = context.task.model().parameters().front().device();
    begin_ = Clock::now();
    cpu_begin_ = std::clock();
  }
  void on_step_end(Context& context) override {
    if (!context.is_logged_step()) return;
    constexpr double kMegabyte = 1e6;
    Metrics metrics;
    if (options_.cpu_stats.value_or(true)) {
      const std::chrono::duration<double> wall = Clock::now() - begin_;
      const double busy = static_cast<double>(std::clock() - cpu_begin_) / CLOCKS_PER_SEC;
      if (wall.count() > 0) metrics["device/cpu_percent"] = 100 * busy / wall.count();
      metrics["device/rss_mb"] = static_cast<double>(perf::used_memory(c10::kCPU)) / kMegabyte;
      // The resident memory stays at its peak: what is in use shows whether something grows.
      if (const auto heap = heap_statistics())
        metrics["device/heap_mb"] = static_cast<double>(heap->allocated) / kMegabyte;
      begin_ = Clock::now();
      cpu_begin_ = std::clock();
    }
    if (device_.is_cuda()) {
      metrics["device/gpu_allocated_mb"] =
          static_cast<double>(perf::used_memory(device_)) / kMegabyte;
      metrics["device/gpu_peak_mb"] = static_cast<double>(perf::peak_memory(device_)) / kMegabyte;
    }
    if (!metrics.empty()) context.log_only(metrics);
  }

 private:
  Options options_;
  c10::Device device_ = c10::kCPU;
  Clock::time_point begin_;
  std::clock_t cpu_begin_ = 0;  // CPU time of all threads
};
CYTRA_REGISTER(Callback, DeviceStatsMonitor, "DeviceStatsMonitor");

}  // namespace
}  // namespace cytra::training
