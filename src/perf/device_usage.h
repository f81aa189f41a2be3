#pragma once
// What this process uses of the machine.
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "base/stopwatch.h"
#include "device/backend.h"

namespace cytra::perf {

struct DeviceUsage {
  double cores_busy = 0;       // by all threads of this process, since the reading before
  int64_t resident_bytes = 0;  // of this process
  std::optional<double> ipc;   // instructions per cycle, since then; absent where the system counts
                               // none (perf_event_paranoid above 2, most virtual machines)
  std::optional<device::GpuUsage> gpu;  // of a training on a GPU whose driver tells
  /// "GPU 87 % 10.2 GB of 79.6 GB 305 W 61 C", "CPU 1.9 cores 812.0 MB 1.43 IPC".
  std::string text() const;
};

class InstructionCounter;

/// Reads them, at some 100 us a time.
class UsageMeter {
 public:
  /// `device`: where this process computes. Instructions are counted in the threads that exist
  /// now, and in the threads that they start.
  explicit UsageMeter(c10::Device device);
  ~UsageMeter();
  DeviceUsage read();

 private:
  std::unique_ptr<device::Gauge> gpu_;
  std::unique_ptr<InstructionCounter> counter_;
  Stopwatch stopwatch_;
  std::clock_t cpu_begin_;  // CPU time of all threads
};

}  // namespace cytra::perf
