// Part of training/profiles.h: MemoryProfiler, what each phase of the work allocates, leaves
// allocated and takes of the device, and the course of the memory over the first steps.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>

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
#include "training/optimizer.h"
#include "training/profiles.h"

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

/// Measures the bytes allocated on one kind of device, by phase (perf::Scope). A CPU's are those of
/// this thread and its backward passes; a GPU's are all of torch's.
class MemoryMeter final : public perf::ScopeListener, public c10::MemoryReportingInfoBase {
 public:
  /// From here on there is a course, until end_step() has the last step. `constant` is there
  /// already.
  MemoryMeter(c10::DeviceType kind, const std::vector<at::Tensor>& constant)
      : course_{c10::DeviceTypeName(kind), {}, {}},
        kind_(kind),
        has_own_memory_(device::has_own_memory(kind)) {
    for (const at::Tensor& tensor : constant) {
      const c10::Storage& storage = tensor.storage();
      const auto bytes = static_cast<int64_t>(storage.nbytes());
      if (tensor.device().type() == kind_ && blocks_.emplace(storage.data(), bytes).second)
        now_ += bytes;
    }
    at_begin_ = entered_at_ = now_;
    note();
  }
  void end_step(int64_t step, bool is_last) {
    const std::lock_guard lock(mutex_);
    if (!is_watching_) return;
    steps_.emplace_back(step, std::exchange(of_step_, {}));
    is_watching_ = !is_last;
  }
  void stop() { enter("other"); }
  /// Writes memory.svg and memory.json into the folder. Returns the table. `constant` names what
  /// was there.
  std::string write(const std::string& folder, const std::string& constant) const {
    const std::string& device = course_.device;
    std::vector<std::pair<std::string, PhaseMemory>> phases(phases_.begin(), phases_.end());
    std::ranges::sort(phases,
                      [](const auto& a, const auto& b) { return a.second.peak > b.second.peak; });
    const auto bytes = [](int64_t count) { return format_bytes(static_cast<double>(count)); };
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
    const std::string begin = bytes(at_begin_);
    if (at_begin_ > 0) lines.push_back({"(" + constant + ")", begin, begin, "", ""});
    write_file(folder + "/memory.svg", report::memory_svg(course_));
    write_file(folder + "/memory.json", json());
    return format_table(lines);
  }

  void begin(const char* name) override {
    const std::lock_guard lock(mutex_);
    if (depth_++ == 0) enter(std::string_view(name).starts_with("callbacks.") ? "callbacks" : name);
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
  std::string json() const {
    std::vector<std::string> points, phases, steps;
    for (const auto& [s, bytes] : course_.points)
      points.push_back(fmt::format("[{:.6f},{}]", s, bytes));
    for (const report::MemoryCourse::Phase& phase : course_.phases)
      phases.push_back(
          fmt::format("[\"{}\",{:.6f},{:.6f}]", phase.name, phase.begin_s, phase.end_s));
    for (const auto& [step, of_step] : steps_)
      steps.push_back(fmt::format("{{\"step\":{},{}}}", step, to_json(of_step)));
    return fmt::format(
        "{{\"device\":\"{}\",\"at_begin_bytes\":{},\n{},\n\"steps\":[{}],\n"
        "\"phases_s\":[{}],\n\"timeline_s_bytes\":[{}]}}\n",
        course_.device,
        at_begin_,
        to_json(phases_),
        join(steps, ","),
        join(phases, ","),
        join(points, ","));
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

class MemoryProfile final : public Profile {
 public:
  MemoryProfile(Settings settings,
                c10::DeviceType kind,
                const std::vector<at::Tensor>& constant,
                std::string what,
                int64_t steps)
      : Profile(std::move(settings)),
        meter_(std::make_shared<MemoryMeter>(kind, constant)),
        what_(std::move(what)),
        most_steps_(steps),
        watching_(std::in_place, meter_) {}
  void finish() override {
    watching_.reset();
    meter_->stop();
    const std::string table = meter_->write(settings_.folder, what_);
    write_table(table);
    log::info("peak by phase ({}/memory.svg):\n{}", settings_.folder, table);
  }

 private:
  /// Reports to the meter what this thread does, while it lives.
  struct Watch {
    explicit Watch(const std::shared_ptr<MemoryMeter>& meter)
        : reporting(c10::DebugInfoKind::PROFILER_STATE, meter), listening(*meter, false) {}
    c10::DebugInfoGuard reporting;
    perf::Listening listening;
    perf::QuietLog quiet;
  };
  void step_ended() override { meter_->end_step(number(), steps_ == most_steps_); }

  const std::shared_ptr<MemoryMeter> meter_;
  const std::string what_;
  const int64_t most_steps_;
  std::optional<Watch> watching_;
};

class MemoryProfiler final : public ProfilingCallback {
 public:
  struct Options {
    std::string dirpath = "profiler";
    int64_t steps = 3;
    void visit(auto& v) {
      v("dirpath", dirpath, "folder of the files; of trainer.profiler: profiler in the run folder");
      v("steps",
        steps,
        "steps in the timeline; the peaks are those of the whole training",
        1,
        1000);
    }
  };
  explicit MemoryProfiler(const Options& options) : options_(options) {}

 private:
  std::unique_ptr<Profile> begin(Context& context) override {
    std::vector<at::Tensor> constant = context.task.model().parameters();
    const auto kind = constant.empty() ? c10::kCPU : constant.front().device().type();
    for (std::size_t i = 0, parameters = constant.size(); i < parameters; ++i) {
      if (const at::Tensor grad = constant[i].grad(); grad.defined()) constant.push_back(grad);
    }
    for (const at::Tensor& buffer : context.task.model().buffers()) constant.push_back(buffer);
    for (const auto& [key, tensor] : context.optimizer.state()) constant.push_back(tensor);
    return memory_profile(settings(context, options_.dirpath),
                          kind,
                          constant,
                          "weights and optimizer",
                          options_.steps);
  }
  const Options options_;
};
CYTRA_REGISTER(Callback, MemoryProfiler, "MemoryProfiler");

}  // namespace

std::unique_ptr<Profile> memory_profile(Profile::Settings settings,
                                        c10::DeviceType kind,
                                        const std::vector<at::Tensor>& constant,
                                        const std::string& what,
                                        int64_t steps) {
  return std::make_unique<MemoryProfile>(std::move(settings), kind, constant, what, steps);
}

}  // namespace cytra::training
