#include "perf/operator_profile.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/table.h"

namespace cytra::perf {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

constexpr const char* kMemory = "[memory]";
constexpr uint8_t kGpuAnnotation = 2;  // libkineto's ActivityType::GPU_USER_ANNOTATION

torch::profiler::impl::ProfilerConfig config_of(const OperatorProfileOptions& options) {
  return torch::profiler::impl::ProfilerConfig(
      torch::profiler::impl::ProfilerState::KINETO, options.record_shapes, options.profile_memory);
}

std::set<ActivityType> activities_of(const OperatorProfileOptions& options) {
  std::set<ActivityType> activities{ActivityType::CPU};
  if (options.cuda) activities.insert(ActivityType::CUDA);
  return activities;
}

/// Bytes taken less bytes given back up to a moment.
class Memory {
 public:
  void add(uint64_t ns, int64_t bytes) { events_.emplace_back(ns, bytes); }
  void finish() {
    std::ranges::sort(events_);
    for (auto& event : events_) event.second = total_ += event.second;
  }
  int64_t between(uint64_t begin, uint64_t end) const {  // both inclusive
    return before(end + 1) - before(begin);
  }

 private:
  int64_t before(uint64_t ns) const {
    const auto place =
        std::ranges::lower_bound(events_, ns, {}, &std::pair<uint64_t, int64_t>::first);
    return place == events_.begin() ? 0 : std::prev(place)->second;
  }
  std::vector<std::pair<uint64_t, int64_t>> events_;
  int64_t total_ = 0;
};

struct Event {
  std::string name;
  uint64_t begin, end, thread, correlation;
  bool is_sync = true, is_dropped = false;
  Event* parent = nullptr;
  std::size_t children = 0;
  double inside_us = 0, cuda_us = 0, inside_cuda_us = 0;  // inside: of its children
  int64_t cpu_bytes = 0, cuda_bytes = 0, inside_cpu_bytes = 0, inside_cuda_bytes = 0;
  double us() const { return static_cast<double>(end - begin) / 1e3; }
};

/// What torch's table leaves out, too.
bool is_left_out(const std::string& name) {
  static const std::vector<std::string> names{kMemory,
                                              "[OutOfMemory]",
                                              "profiler::_record_function_enter",
                                              "profiler::_record_function_enter_new",
                                              "profiler::_record_function_exit",
                                              "aten::is_leaf",
                                              "aten::output_nr",
                                              "aten::_version"};
  return contains(names, name);
}

/// Parents by nesting in time in each thread. An event that is the only one in a parent of the
/// same name is merged with the parent. Source: torch.autograd.profiler_util.EventList.
void build_tree(std::vector<Event>& events) {
  std::ranges::sort(events, [](const Event& a, const Event& b) {
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);
  });
  std::vector<Event*> open;
  for (Event& event : events) {
    if (!event.is_sync) continue;
    while (!open.empty() && (open.back()->thread != event.thread ||
                             event.begin >= open.back()->end || event.end > open.back()->end))
      open.pop_back();
    if (!open.empty()) {
      event.parent = open.back();
      event.parent->children += 1;
    }
    open.push_back(&event);
  }
  for (Event& event : events) {  // parents come before their children
    while (event.parent != nullptr && event.parent->is_dropped) event.parent = event.parent->parent;
    if (event.parent == nullptr || event.parent->name != event.name || event.parent->children != 1)
      continue;
    event.is_dropped = true;
    event.parent->children = event.children;
    event.parent->cuda_us += event.cuda_us;
  }
}

void add_rows(const std::vector<kineto::KinetoEvent>& recorded, OperatorRows& rows) {
  Memory cpu_memory, cuda_memory;
  std::vector<Event> events;
  std::unordered_map<uint64_t, double> kernels_us;  // by the operation that launched them
  std::unordered_map<uint64_t, uint64_t> threads;   // of an operation
  std::vector<std::pair<std::size_t, uint64_t>> launches;
  for (const kineto::KinetoEvent& one : recorded) {
    std::string name = one.name();
    if (name == kMemory)
      (one.deviceType() == c10::kCPU ? cpu_memory : cuda_memory).add(one.startNs(), one.nBytes());
    if (is_left_out(name) || one.isHiddenEvent()) continue;
    if (name.starts_with("ProfilerStep#")) name = "ProfilerStep*";
    const uint64_t by = one.linkedCorrelationId();
    if (one.deviceType() != c10::kCPU) {
      if (one.activityType() == kGpuAnnotation) continue;
      const double us = static_cast<double>(one.durationNs()) / 1e3;
      OperatorRow& row = rows[name];
      row.is_kernel = true;
      row.calls += 1;
      row.cuda_us += us;
      row.self_cuda_us += us;
      if (by > 0) kernels_us[by] += us;
      continue;
    }
    if (by > 0) launches.emplace_back(events.size(), by);
    events.push_back({name, one.startNs(), one.endNs(), one.startThreadId(), one.correlationId()});
    events.back().is_sync = !one.isAsync() && one.startThreadId() == one.endThreadId();
    if (by == 0) {
      threads[one.correlationId()] = one.startThreadId();
    } else {
      events.back().correlation = 0;  // a call of the CUDA runtime: its kernels are the operation's
    }
  }
  for (const auto& [event, by] : launches) {
    if (const auto thread = threads.find(by); thread != threads.end())
      events[event].thread = thread->second;
  }
  cpu_memory.finish();
  cuda_memory.finish();
  for (Event& event : events) {
    const auto kernels = kernels_us.find(event.correlation);
    if (event.is_sync && event.correlation > 0 && kernels != kernels_us.end())
      event.cuda_us = kernels->second;
    event.cpu_bytes = cpu_memory.between(event.begin, event.end);
    event.cuda_bytes = cuda_memory.between(event.begin, event.end);
  }
  build_tree(events);
  for (auto event = events.rbegin(); event != events.rend(); ++event) {  // children first
    if (event->is_dropped) continue;
    OperatorRow& row = rows[event->name];
    row.calls += 1;
    row.cpu_us += event->us();
    row.cpu_bytes += event->cpu_bytes;
    row.cuda_bytes += event->cuda_bytes;
    if (!event->is_sync) continue;
    const double cuda_us = event->cuda_us + event->inside_cuda_us;
    row.self_cpu_us += event->us() - event->inside_us;
    row.cuda_us += cuda_us;
    row.self_cuda_us += event->cuda_us;
    row.self_cpu_bytes += event->cpu_bytes - event->inside_cpu_bytes;
    row.self_cuda_bytes += event->cuda_bytes - event->inside_cuda_bytes;
    if (event->parent == nullptr) continue;
    event->parent->inside_us += event->us();
    event->parent->inside_cuda_us += cuda_us;
    event->parent->inside_cpu_bytes += event->cpu_bytes;
    event->parent->inside_cuda_bytes += event->cuda_bytes;
  }
}

std::string format_us(double us) {
  return us >= 1e6   ? fmt::format("{:.3f}s", us / 1e6)
         : us >= 1e3 ? fmt::format("{:.3f}ms", us / 1e3)
                     : fmt::format("{:.3f}us", us);
}

}  // namespace

OperatorProfiler::~OperatorProfiler() {
  if (is_prepared_ && !is_recording_) start();  // Kineto drops a preparation in no other way
  if (is_recording_) kineto::disableProfiler();
}

void OperatorProfiler::prepare() {
  // Kineto, of a torch with CUDA, else complains on a machine without a GPU.
  if (!options_.cuda) setenv("KINETO_LOG_LEVEL", "99", /*overwrite=*/0);
  kineto::prepareProfiler(config_of(options_), activities_of(options_));
  is_prepared_ = true;
}

void OperatorProfiler::start() {
  if (!is_prepared_) prepare();
  if (options_.profile_memory) quiet_.emplace();
  kineto::enableProfiler(config_of(options_), activities_of(options_));
  is_recording_ = true;
}

void OperatorProfiler::stop(OperatorRows& rows, const std::string& trace) {
  is_prepared_ = is_recording_ = false;
  const std::unique_ptr<kineto::ProfilerResult> result = kineto::disableProfiler();
  quiet_.reset();
  add_rows(result->events(), rows);
  if (trace.empty()) return;
  AtomicFile file(trace);
  result->save(file.temporary());  // Kineto writes TEMPORARY.tmp, renames it, tells of no failure
  std::ifstream written(file.temporary());
  written.seekg(-1, std::ios::end);
  if (written.get() != '}') {
    std::remove((file.temporary() + ".tmp").c_str());
    throw IoError(trace + ": can't be written; free some space or choose another folder");
  }
  file.commit();
}

const std::map<std::string, double (*)(const OperatorRow&)>& operator_sort_keys() {
  using Row = const OperatorRow&;
  static const std::map<std::string, double (*)(Row)> keys{
      {"count", [](Row row) { return static_cast<double>(row.calls); }},
      {"cpu_time", [](Row row) { return row.cpu_us / static_cast<double>(row.calls); }},
      {"cpu_time_total", [](Row row) { return row.cpu_us; }},
      {"self_cpu_time_total", [](Row row) { return row.self_cpu_us; }},
      {"cuda_time_total", [](Row row) { return row.cuda_us; }},
      {"self_cuda_time_total", [](Row row) { return row.self_cuda_us; }},
      {"cpu_memory_usage", [](Row row) { return static_cast<double>(row.cpu_bytes); }},
      {"self_cpu_memory_usage", [](Row row) { return static_cast<double>(row.self_cpu_bytes); }},
      {"cuda_memory_usage", [](Row row) { return static_cast<double>(row.cuda_bytes); }},
      {"self_cuda_memory_usage", [](Row row) { return static_cast<double>(row.self_cuda_bytes); }},
  };
  return keys;
}

std::string to_text(const OperatorRows& rows, const std::string& sort_by, int64_t row_limit) {
  constexpr std::size_t kWidth = 55;  // of a name, as torch's
  double cpu_us = 0, cuda_us = 0;
  bool has_cuda = false, has_cpu_bytes = false, has_cuda_bytes = false;
  std::vector<const OperatorRows::value_type*> order;
  for (const auto& entry : rows) {
    const OperatorRow& row = entry.second;
    order.push_back(&entry);
    cpu_us += row.self_cpu_us;
    if (row.is_kernel) cuda_us += row.self_cuda_us;
    has_cuda = has_cuda || row.cuda_us > 0;
    has_cpu_bytes = has_cpu_bytes || row.self_cpu_bytes != 0;
    has_cuda_bytes = has_cuda_bytes || row.self_cuda_bytes != 0;
  }
  const auto key = operator_sort_keys().at(sort_by);
  std::ranges::stable_sort(
      order, [&](const auto* a, const auto* b) { return key(a->second) > key(b->second); });
  const auto percent = [](double part, double whole) {
    return fmt::format("{:.2f}%", whole > 0 ? 100 * part / whole : 0.0);
  };
  using Row = const OperatorRow&;
  struct Column {
    const char* title;
    bool is_shown;
    std::function<std::string(Row)> text;
  };
  const auto average = [](double us, Row row) {
    return format_us(us / static_cast<double>(row.calls));
  };
  const auto bytes = [](int64_t count) { return format_bytes(static_cast<double>(count)); };
  const std::vector<Column> columns{
      {"Self CPU %", true, [&](Row row) { return percent(row.self_cpu_us, cpu_us); }},
      {"Self CPU", true, [](Row row) { return format_us(row.self_cpu_us); }},
      {"CPU total %", true, [&](Row row) { return percent(row.cpu_us, cpu_us); }},
      {"CPU total", true, [](Row row) { return format_us(row.cpu_us); }},
      {"CPU time avg", true, [&](Row row) { return average(row.cpu_us, row); }},
      {"Self CUDA", has_cuda, [](Row row) { return format_us(row.self_cuda_us); }},
      {"Self CUDA %", has_cuda, [&](Row row) { return percent(row.self_cuda_us, cuda_us); }},
      {"CUDA total", has_cuda, [](Row row) { return format_us(row.cuda_us); }},
      {"CUDA time avg", has_cuda, [&](Row row) { return average(row.cuda_us, row); }},
      {"CPU Mem", has_cpu_bytes, [&](Row row) { return bytes(row.cpu_bytes); }},
      {"Self CPU Mem", has_cpu_bytes, [&](Row row) { return bytes(row.self_cpu_bytes); }},
      {"CUDA Mem", has_cuda_bytes, [&](Row row) { return bytes(row.cuda_bytes); }},
      {"Self CUDA Mem", has_cuda_bytes, [&](Row row) { return bytes(row.self_cuda_bytes); }},
      {"# of Calls", true, [](Row row) { return std::to_string(row.calls); }}};
  const auto end = std::min(order.size(), static_cast<std::size_t>(row_limit));
  std::vector<std::vector<std::string>> lines{{"Name"}};
  for (std::size_t i = 0; i < end; ++i) {
    const std::string& name = order[i]->first;
    lines.push_back({name.size() <= kWidth ? name : name.substr(0, kWidth - 3) + "..."});
  }
  for (const Column& column : columns) {
    if (!column.is_shown) continue;
    lines[0].emplace_back(column.title);
    for (std::size_t i = 0; i < end; ++i) lines[i + 1].push_back(column.text(order[i]->second));
  }
  std::string text = format_table(lines);
  if (end < order.size()) text += fmt::format("... and {} more\n", order.size() - end);
  text += "Self CPU time total: " + format_us(cpu_us) + "\n";
  if (has_cuda) text += "Self CUDA time total: " + format_us(cuda_us) + "\n";
  return text;
}

}  // namespace cytra::perf
