#include "perf/device_usage.h"

#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strings.h"
#include "device/device.h"

namespace cytra::perf {

/// Instructions and cycles of the threads there are, and of those that they start. Source: man
/// perf_event_open.
class InstructionCounter {
 public:
  InstructionCounter() {
    std::error_code error;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
      const pid_t id = std::stoi(thread.path().filename().string());
      for (std::size_t which = 0; which < 2; ++which) {
        perf_event_attr what{};
        what.size = sizeof what;
        what.type = PERF_TYPE_HARDWARE;
        what.config = which == 0 ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_CPU_CYCLES;
        what.inherit = 1;
        what.exclude_kernel = what.exclude_hv = 1;  // allowed to everybody
        const auto file = static_cast<int>(::syscall(
            SYS_perf_event_open, &what, id, /*cpu=*/-1, /*group=*/-1, PERF_FLAG_FD_CLOEXEC));
        if (file < 0) return;  // none is allowed, or there are no counters
        files_[which].push_back(file);
      }
    }
  }
  ~InstructionCounter() {
    for (const auto& files : files_) {
      for (const int file : files) ::close(file);
    }
  }
  InstructionCounter& operator=(InstructionCounter&&) = delete;

  /// Instructions per cycle since the last call.
  std::optional<double> read() {
    std::array<double, 2> now{};
    for (std::size_t which = 0; which < 2; ++which) {
      for (const int file : files_[which]) {
        uint64_t count = 0;
        if (::read(file, &count, sizeof count) == sizeof count)
          now[which] += static_cast<double>(count);
      }
    }
    const std::array<double, 2> before = std::exchange(before_, now);
    const double cycles = now[1] - before[1];
    return cycles > 0 ? std::optional((now[0] - before[0]) / cycles) : std::nullopt;
  }

 private:
  std::array<std::vector<int>, 2> files_;  // instructions, cycles
  std::array<double, 2> before_{};
};

std::string DeviceUsage::text() const {
  const auto bytes = [](int64_t count) { return format_bytes(static_cast<double>(count)); };
  if (!gpu) {
    return fmt::format("CPU {:.1f} cores {}{}",
                       cores_busy,
                       bytes(resident_bytes),
                       ipc ? fmt::format(" {:.2f} IPC", *ipc) : "");
  }
  std::string line = "GPU";
  if (gpu->percent) line += fmt::format(" {:.0f} %", *gpu->percent);
  if (gpu->used_bytes) line += " " + bytes(*gpu->used_bytes);
  if (gpu->total_bytes) line += " of " + bytes(*gpu->total_bytes);
  if (gpu->power_w) line += fmt::format(" {:.0f} W", *gpu->power_w);
  if (gpu->temperature_c) line += fmt::format(" {:.0f} C", *gpu->temperature_c);
  return line;
}

UsageMeter::UsageMeter(c10::Device device)
    : gpu_(device::backend_of(device).gauge(device)),
      counter_(std::make_unique<InstructionCounter>()),
      cpu_begin_(std::clock()) {}

UsageMeter::~UsageMeter() = default;

DeviceUsage UsageMeter::read() {
  const std::clock_t cpu = std::clock();
  const double wall = std::exchange(stopwatch_, {}).seconds();
  const double busy = static_cast<double>(cpu - std::exchange(cpu_begin_, cpu)) / CLOCKS_PER_SEC;
  DeviceUsage usage;
  if (wall > 0) usage.cores_busy = busy / wall;
  usage.resident_bytes = device::used_memory(c10::kCPU);
  usage.ipc = counter_->read();
  if (gpu_) usage.gpu = gpu_->usage();
  return usage;
}

}  // namespace cytra::perf
