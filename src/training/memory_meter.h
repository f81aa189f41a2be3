#pragma once
// What work allocates, by phase: of trainer.profiler and predict.profiler. Include only from .cpp
// files.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "base/stopwatch.h"
#include "perf/scopes.h"
#include "report/memory_chart.h"

namespace cytra::training {

/// Bytes of a phase, over its calls.
struct PhaseMemory {
  int64_t calls = 0;
  int64_t peak = 0;       // the most that was allocated
  int64_t allocated = 0;  // at the end of the newest call
  int64_t delta = 0;      // what the calls have left allocated, all together
  int64_t reserved = 0;   // the most at an end: of torch's GPU allocator; a CPU's resident memory
};
using Phases = std::map<std::string, PhaseMemory>;

/// Measures the bytes allocated on one kind of device, by phase (perf::Scope). A CPU's are those of
/// this thread and its backward passes; a GPU's are all of torch's.
class MemoryMeter final : public perf::ScopeListener, public c10::MemoryReportingInfoBase {
 public:
  explicit MemoryMeter(c10::DeviceType kind);
  /// Counts what is there already.
  void add(const at::Tensor& tensor);
  /// From here on there is a course, until end_step() has the last step.
  void start();
  void end_step(int64_t step, bool is_last);
  void stop();
  /// Writes table.txt, memory.svg and memory.json into the folder, and logs the table. `constant`:
  /// what was added: "weights and optimizer".
  void write(const std::string& folder, const std::string& constant) const;

  void begin(const char* name) override;
  void end() override;
  void reportMemoryUsage(void* address,
                         int64_t bytes,
                         std::size_t allocated,
                         std::size_t reserved,
                         c10::Device device) override;
  bool memoryProfilingEnabled() const override { return true; }

 private:
  double seconds() const { return stopwatch_.seconds(); }
  void enter(const std::string& phase);
  void note();
  std::string json() const;

  std::mutex mutex_;
  report::MemoryCourse course_;
  c10::DeviceType kind_;
  bool has_own_memory_, is_watching_ = true;
  int depth_ = 0;
  int64_t now_ = 0, reserved_ = 0, at_begin_ = 0, entered_at_ = 0;
  std::unordered_map<const void*, int64_t> blocks_;
  std::string phase_ = "other";
  double entered_s_ = 0;
  Phases phases_, of_step_;
  std::vector<std::pair<int64_t, Phases>> steps_;
  Stopwatch stopwatch_;
};

/// Reports to a meter what this thread does, while it lives.
class WatchMemory {
 public:
  explicit WatchMemory(const std::shared_ptr<MemoryMeter>& meter)
      : reporting_(c10::DebugInfoKind::PROFILER_STATE, meter), listening_(*meter, false) {}

 private:
  c10::DebugInfoGuard reporting_;
  perf::Listening listening_;
  perf::QuietLog quiet_;
};

}  // namespace cytra::training
