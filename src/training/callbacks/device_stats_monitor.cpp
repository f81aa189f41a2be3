// DeviceStatsMonitor: what the training uses of the machine. Follows
// lightning.pytorch.callbacks.DeviceStatsMonitor, with its own names.
#include <ATen/ATen.h>

#include "base/memory.h"
#include "config/registry.h"
#include "device/backend.h"
#include "device/device.h"
#include "nn/model.h"
#include "perf/device_usage.h"
#include "training/callback.h"

namespace cytra::training {
namespace {

constexpr double kMegabyte = 1e6;

/// Where it is known.
template <class T>
void add_known(Metrics& metrics, const char* name, const std::optional<T>& value, double unit = 1) {
  if (value) metrics[name] = static_cast<double>(*value) / unit;
}

class DeviceStatsMonitor final : public Callback {
 public:
  struct Options {
    std::optional<bool> cpu_stats;
    void visit(auto& v) {
      v("cpu_stats", cpu_stats, "CPU and memory of the process; null or true: yes");
    }
  };
  explicit DeviceStatsMonitor(const Options& options) : options_(options) {}

  void on_fit_start(Context& context) override {
    device_ = context.task.model().parameters().front().device();
    meter_.emplace(device_);
  }
  void on_step_end(Context& context) override {
    if (!context.is_logged_step()) return;
    Metrics metrics;
    const perf::DeviceUsage usage = meter_->read();
    if (options_.cpu_stats.value_or(true)) {
      metrics["device/cpu_percent"] = 100 * usage.cores_busy;
      metrics["device/rss_mb"] = static_cast<double>(usage.resident_bytes) / kMegabyte;
      add_known(metrics, "device/ipc", usage.ipc);
      // The resident memory stays at its peak: what is in use shows whether something grows.
      if (const auto heap = heap_statistics())
        metrics["device/heap_mb"] = static_cast<double>(heap->allocated) / kMegabyte;
    }
    if (usage.gpu) {
      add_known(metrics, "device/gpu_percent", usage.gpu->percent);
      add_known(metrics, "device/gpu_used_mb", usage.gpu->used_bytes, kMegabyte);
      add_known(metrics, "device/gpu_power_w", usage.gpu->power_w);
      add_known(metrics, "device/gpu_temperature_c", usage.gpu->temperature_c);
    }
    if (device::has_own_memory(device_)) {
      metrics["device/gpu_allocated_mb"] =
          static_cast<double>(device::used_memory(device_)) / kMegabyte;
      metrics["device/gpu_peak_mb"] = static_cast<double>(device::peak_memory(device_)) / kMegabyte;
    }
    if (!metrics.empty()) context.log_only(metrics);
  }

 private:
  Options options_;
  c10::Device device_ = c10::kCPU;
  std::optional<perf::UsageMeter> meter_;
};
CYTRA_REGISTER(Callback, DeviceStatsMonitor, "DeviceStatsMonitor");

}  // namespace
}  // namespace cytra::training
