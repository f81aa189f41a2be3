// MemoryProfiler: what each phase of training allocates, leaves allocated and takes of the device,
// and the course of the memory over the first steps.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_map>

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "base/table.h"
#include "config/registry.h"
#include "device/backend.h"
#include "device/device.h"
#include "nn/model.h"
#include "perf/scopes.h"
#include "report/memory_chart.h"
#include "training/callback.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

/// Bytes of a phase, over its calls.
struct PhaseMemory {
  int64_t calls = 0;
  int64_t peak = 0;       // the most that was allocated
  int64_t allocated = 0;  // at the end of the newest call
  int64_t delta = 0;      // what the calls have left allocated, all together
  int64_t reserved = 0;   // the most at an end: of torch's GPU allocator; a CPU's resident memory
};
using Phases = std::map<std::string, PhaseMemory>;

/// Bytes allocated on one kind of device. A CPU's are those of this thread and its backward
/// passes; a GPU's are all of torch's.
class Meter final : public perf::ScopeListener, public c10::MemoryReportingInfoBase {
 public:
  explicit Meter(c10::DeviceType kind)
      : course_{c10::DeviceTypeName(kind), {}, {}},
        kind_(kind),
        has_own_memory_(device::has_own_memory(kind)) {}

  /// What is there already.
  void add(const at::Tensor& tensor) {
    const c10::Storage& storage = tensor.storage();
    if (tensor.device().type() != kind_ ||
        !blocks_.emplace(storage.data(), storage.nbytes()).second)
      return;
    now_ += static_cast<int64_t>(storage.nbytes());
  }

  void begin(const char* name) override {
    const std::lock_guard lock(mutex_);
    if (depth_++ == 0) enter(starts_with(name, "callbacks.") ? "callbacks" : name);
  }
  void end() override {
    const std::lock_guard lock(mutex_);
    if (depth_ > 0 && --depth_ == 0) enter("other");
  }

  void reportMemoryUsage(void* address,
                         int64_t bytes,
                         std::size_t allocated,
                         std::size_t reserved,
                         c10::Device device) override {
    if (device.type() != kind_) return;
    const std::lock_guard lock(mutex_);
    if (has_own_memory_) {
      now_ = static_cast<int64_t>(allocated);
      reserved_ = static_cast<int64_t>(reserved);
    } else {
      // A block that another thread gave back is not reported: its address comes again.
      if (const auto block = blocks_.find(address); block != blocks_.end()) {
        now_ -= block->second;
        blocks_.erase(block);
      }
      if (bytes > 0) {
        now_ += bytes;
        blocks_.emplace(address, bytes);
      }
    }
    note();
  }
  bool memoryProfilingEnabled() const override { return true; }

  void end_step(int64_t step, bool is_last) {
    const std::lock_guard lock(mutex_);
    if (!is_watching_) return;
    steps_.emplace_back(step, std::exchange(of_step_, {}));
    is_watching_ = !is_last;
  }
  const Phases& phases() const { return phases_; }
  int64_t at_begin() const { return at_begin_; }
  const report::MemoryCourse& course() const { return course_; }
  const std::vector<std::pair<int64_t, Phases>>& steps() const { return steps_; }

  void start() {
    at_begin_ = entered_at_ = now_;
    stopwatch_ = {};
    note();
  }
  void stop() { enter("other"); }

 private:
  double seconds() const { return stopwatch_.seconds(); }
  void enter(const std::string& phase) {
    if (!has_own_memory_) reserved_ = device::used_memory(c10::kCPU);
    const auto leave = [this](PhaseMemory& memory) {
      memory.calls += 1;
      memory.allocated = now_;
      memory.delta += now_ - entered_at_;
      memory.reserved = std::max(memory.reserved, reserved_);
    };
    leave(phases_[phase_]);
    if (is_watching_) leave(of_step_[phase_]);
    if (is_watching_ && phase_ != "other")
      course_.phases.push_back({phase_, entered_s_, seconds()});
    phase_ = phase;
    entered_s_ = seconds();
    entered_at_ = now_;
    note();
  }
  void note() {
    int64_t& peak = phases_[phase_].peak;
    peak = std::max(peak, now_);
    if (!is_watching_) return;
    int64_t& step_peak = of_step_[phase_].peak;
    step_peak = std::max(step_peak, now_);
    course_.points.emplace_back(seconds(), now_);
  }

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

/// "peak_bytes":{"forward":1024,...},"allocated_bytes":...
std::string to_json(const Phases& phases) {
  const std::pair<const char*, int64_t PhaseMemory::*> columns[] = {
      {"peak_bytes", &PhaseMemory::peak},
      {"allocated_bytes", &PhaseMemory::allocated},
      {"delta_bytes", &PhaseMemory::delta},
      {"reserved_bytes", &PhaseMemory::reserved}};
  std::vector<std::string> parts;
  for (const auto& [name, column] : columns) {
    std::vector<std::string> values;
    for (const auto& [phase, memory] : phases)
      values.push_back(fmt::format("\"{}\":{}", phase, memory.*column));
    parts.push_back(fmt::format("\"{}\":{{{}}}", name, join(values, ",")));
  }
  return join(parts, ",");
}

class MemoryProfiler final : public Callback {
 public:
  struct Options {
    std::string dirpath = "profiler";
    int64_t steps = 3;
    template <class V>
    void visit(V& v) {
      v("dirpath", dirpath, "folder of the files; of trainer.profiler: profiler in the run folder");
      v("steps",
        steps,
        "steps in the timeline; the peaks are those of the whole training",
        1,
        1000);
    }
  };
  explicit MemoryProfiler(const Options& options) : options_(options) {}

  void on_fit_start(Context& context) override {
    make_folders(options_.dirpath);
    const std::vector<at::Tensor> parameters = context.task.model().parameters();
    meter_ = std::make_shared<Meter>(parameters.empty() ? c10::kCPU
                                                        : parameters.front().device().type());
    for (const at::Tensor& parameter : parameters) {
      meter_->add(parameter);
      if (parameter.grad().defined()) meter_->add(parameter.grad());
    }
    for (const at::Tensor& buffer : context.task.model().buffers()) meter_->add(buffer);
    for (const auto& [key, tensor] : context.optimizer.state()) meter_->add(tensor);
    meter_->start();
    reporting_ = std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, meter_);
    listening_.emplace(*meter_, false);
    quiet_.emplace();
  }
  void on_step_end(Context& context) override {
    steps_ += 1;
    meter_->end_step(context.state.step, steps_ == options_.steps);
  }
  void on_fit_end(Context&) override { finish(); }
  void on_exception(Context&, const std::string& /*what*/) override { finish(); }

 private:
  void finish() {
    if (!listening_) return;
    listening_.reset();
    reporting_.reset();
    quiet_.reset();
    meter_->stop();
    const std::string& device = meter_->course().device;
    std::vector<std::pair<std::string, PhaseMemory>> phases(meter_->phases().begin(),
                                                            meter_->phases().end());
    std::sort(phases.begin(), phases.end(), [](const auto& a, const auto& b) {
      return a.second.peak > b.second.peak;
    });
    const auto bytes = [](int64_t count) {
      return (count < 0 ? "-" : "") + format_bytes(std::abs(static_cast<double>(count)));
    };
    std::vector<std::vector<std::string>> lines{{"Phase",
                                                 "Peak " + device + " memory",
                                                 "Allocated",
                                                 "Delta a call",
                                                 device == "CPU" ? "Resident" : "Reserved"}};
    for (const auto& [phase, memory] : phases) {
      lines.push_back({phase,
                       bytes(memory.peak),
                       bytes(memory.allocated),
                       bytes(memory.delta / std::max<int64_t>(memory.calls, 1)),
                       bytes(memory.reserved)});
    }
    const std::string begin = bytes(meter_->at_begin());
    lines.push_back({"(weights and optimizer)", begin, begin, "", ""});
    const std::string table = format_table(lines);
    write_file(options_.dirpath + "/table.txt", table);
    write_file(options_.dirpath + "/memory.svg", report::memory_svg(meter_->course()));
    write_file(options_.dirpath + "/memory.json", json());
    log::info("peak by phase ({}/memory.svg):\n{}", options_.dirpath, table);
  }

  std::string json() const {
    const report::MemoryCourse& course = meter_->course();
    std::vector<std::string> points, phases, steps;
    for (const auto& [s, bytes] : course.points)
      points.push_back(fmt::format("[{:.6f},{}]", s, bytes));
    for (const report::MemoryCourse::Phase& phase : course.phases)
      phases.push_back(
          fmt::format("[\"{}\",{:.6f},{:.6f}]", phase.name, phase.begin_s, phase.end_s));
    for (const auto& [step, phases] : meter_->steps())
      steps.push_back(fmt::format("{{\"step\":{},{}}}", step, to_json(phases)));
    return fmt::format(
        "{{\"device\":\"{}\",\"at_begin_bytes\":{},\n{},\n\"steps\":[{}],\n"
        "\"phases_s\":[{}],\n\"timeline_s_bytes\":[{}]}}\n",
        course.device,
        meter_->at_begin(),
        to_json(meter_->phases()),
        join(steps, ","),
        join(phases, ","),
        join(points, ","));
  }

  Options options_;
  int64_t steps_ = 0;
  std::shared_ptr<Meter> meter_;
  std::unique_ptr<c10::DebugInfoGuard> reporting_;
  std::optional<perf::Listening> listening_;
  std::optional<perf::QuietLog> quiet_;
};
CYTRA_REGISTER(Callback, MemoryProfiler, "MemoryProfiler");

}  // namespace
}  // namespace cytra::training
