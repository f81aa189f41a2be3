#include "training/memory_meter.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/table.h"
#include "device/backend.h"
#include "device/device.h"

namespace cytra::training {
namespace {

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

}  // namespace

MemoryMeter::MemoryMeter(c10::DeviceType kind)
    : course_{c10::DeviceTypeName(kind), {}, {}},
      kind_(kind),
      has_own_memory_(device::has_own_memory(kind)) {}

void MemoryMeter::add(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  if (tensor.device().type() != kind_ || !blocks_.emplace(storage.data(), storage.nbytes()).second)
    return;
  now_ += static_cast<int64_t>(storage.nbytes());
}

void MemoryMeter::begin(const char* name) {
  const std::lock_guard lock(mutex_);
  if (depth_++ == 0) enter(starts_with(name, "callbacks.") ? "callbacks" : name);
}

void MemoryMeter::end() {
  const std::lock_guard lock(mutex_);
  if (depth_ > 0 && --depth_ == 0) enter("other");
}

void MemoryMeter::reportMemoryUsage(
    void* address, int64_t bytes, std::size_t allocated, std::size_t reserved, c10::Device device) {
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

void MemoryMeter::end_step(int64_t step, bool is_last) {
  const std::lock_guard lock(mutex_);
  if (!is_watching_) return;
  steps_.emplace_back(step, std::exchange(of_step_, {}));
  is_watching_ = !is_last;
}

void MemoryMeter::start() {
  at_begin_ = entered_at_ = now_;
  stopwatch_ = {};
  note();
}

void MemoryMeter::stop() {
  enter("other");
}

void MemoryMeter::enter(const std::string& phase) {
  if (!has_own_memory_) reserved_ = device::used_memory(c10::kCPU);
  const auto leave = [this](PhaseMemory& memory) {
    memory.calls += 1;
    memory.allocated = now_;
    memory.delta += now_ - entered_at_;
    memory.reserved = std::max(memory.reserved, reserved_);
  };
  leave(phases_[phase_]);
  if (is_watching_) leave(of_step_[phase_]);
  if (is_watching_ && phase_ != "other") course_.phases.push_back({phase_, entered_s_, seconds()});
  phase_ = phase;
  entered_s_ = seconds();
  entered_at_ = now_;
  note();
}

void MemoryMeter::note() {
  int64_t& peak = phases_[phase_].peak;
  peak = std::max(peak, now_);
  if (!is_watching_) return;
  int64_t& step_peak = of_step_[phase_].peak;
  step_peak = std::max(step_peak, now_);
  course_.points.emplace_back(seconds(), now_);
}

void MemoryMeter::write(const std::string& folder, const std::string& constant) const {
  const std::string& device = course_.device;
  std::vector<std::pair<std::string, PhaseMemory>> phases(phases_.begin(), phases_.end());
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
  const std::string begin = bytes(at_begin_);
  if (at_begin_ > 0) lines.push_back({"(" + constant + ")", begin, begin, "", ""});
  const std::string table = format_table(lines);
  write_file(folder + "/table.txt", table);
  write_file(folder + "/memory.svg", report::memory_svg(course_));
  write_file(folder + "/memory.json", json());
  log::info("peak by phase ({}/memory.svg):\n{}", folder, table);
}

std::string MemoryMeter::json() const {
  std::vector<std::string> points, phases, steps;
  for (const auto& [s, bytes] : course_.points)
    points.push_back(fmt::format("[{:.6f},{}]", s, bytes));
  for (const report::MemoryCourse::Phase& phase : course_.phases)
    phases.push_back(fmt::format("[\"{}\",{:.6f},{:.6f}]", phase.name, phase.begin_s, phase.end_s));
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

}  // namespace cytra::training
