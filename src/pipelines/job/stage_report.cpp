#include "pipelines/job/stage_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "base/prometheus_text.h"
#include "base/table.h"
#include "perf/scopes.h"

namespace cytra::pipelines {

StageReport::StageReport(std::string program)
    : program_(std::move(program)), begin_(std::chrono::steady_clock::now()) {}

StageReport::Stage& StageReport::add(const std::string& name, int64_t threads) {
  const std::lock_guard lock(mutex_);
  return stages_.emplace_back(name, threads);
}

void StageReport::count(const std::string& name, const std::string& help, int64_t by) {
  const std::lock_guard lock(mutex_);
  Counter& counter = counters_[name];
  counter.help = help;
  counter.value += by;
}

void StageReport::finish() {
  const std::lock_guard lock(mutex_);
  if (end_ == Time{}) end_ = std::chrono::steady_clock::now();
}

double StageReport::seconds() const {
  const Time end = end_ == Time{} ? std::chrono::steady_clock::now() : end_;
  return std::chrono::duration<double>(end - begin_).count();
}

std::vector<StageReport::Figures> StageReport::figures() const {
  const std::lock_guard lock(mutex_);
  const double wall = seconds();
  std::vector<Figures> all;
  for (const Stage& stage : stages_) {
    const double busy = 1e-9 * static_cast<double>(stage.busy_ns_.load());
    const double had = wall * static_cast<double>(stage.threads_);
    all.push_back(
        {stage.name_, stage.threads_, stage.items_.load(), busy, had > 0 ? busy / had : 0});
  }
  return all;
}

std::string StageReport::table() const {
  std::vector<std::vector<std::string>> rows{
      {"stage", "threads", "items", "busy s", "share", "ms each"}};
  for (const Figures& stage : figures()) {
    const double each =
        stage.items == 0 ? 0 : 1000 * stage.busy_s / static_cast<double>(stage.items);
    rows.push_back({stage.name,
                    std::to_string(stage.threads),
                    std::to_string(stage.items),
                    fmt::format("{:.2f}", stage.busy_s),
                    fmt::format("{:.0f} %", 100 * stage.busy_share),
                    fmt::format("{:.2f}", each)});
  }
  return format_table(rows);
}

std::string StageReport::bottleneck() const {
  const std::vector<Figures> all = figures();
  const auto most = std::ranges::max_element(all, {}, &Figures::busy_share);
  if (most == all.end() || most->items == 0) return "";
  const std::lock_guard lock(mutex_);
  return fmt::format("{} is what the others wait for: busy {:.0f} % of {:.1f} s",
                     most->name,
                     100 * most->busy_share,
                     seconds());
}

void StageReport::log_times() const {
  log::info("{}", table());
  if (const std::string slowest = bottleneck(); !slowest.empty()) log::info("{}", slowest);
}

std::string StageReport::prometheus() const {
  const std::vector<Figures> all = figures();
  PrometheusText text;
  const auto of_stages = [&](const char* name, const char* help, const char* type, auto value) {
    text.metric(name, help, type);
    for (const Figures& stage : all)
      text.sample(static_cast<double>(value(stage)),
                  {{"program", program_}, {"stage", stage.name}});
  };
  of_stages("cytra_stage_busy_seconds_total",
            "Seconds that the stage's threads worked.",
            "counter",
            [](const Figures& stage) { return stage.busy_s; });
  of_stages("cytra_stage_items_total", "Items that passed the stage.", "counter", [](auto& stage) {
    return stage.items;
  });
  of_stages("cytra_stage_threads", "Threads of the stage.", "gauge", [](auto& stage) {
    return stage.threads;
  });
  const PrometheusText::Labels labels{{"program", program_}};
  const std::lock_guard lock(mutex_);
  text.metric("cytra_run_seconds", "Seconds since the run began.", "gauge")
      .sample(seconds(), labels);
  for (const auto& [name, counter] : counters_)
    text.metric(fmt::format("cytra_{}_total", name), counter.help, "counter")
        .sample(static_cast<double>(counter.value), labels);
  return text.text();
}

void StageReport::write_prometheus(const std::string& path) const {
  write_file(path, prometheus());
}

StageWork::StageWork(StageReport::Stage& stage, int64_t items)
    : stage_(stage),
      items_(items),
      scope_(std::make_unique<perf::Scope>(stage.name_.c_str())),
      begin_(std::chrono::steady_clock::now()) {}

StageWork::~StageWork() {
  const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin_;
  stage_.busy_ns_ += time.count();
  stage_.items_ += items_;
}

StagePause::~StagePause() {
  const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin_;
  stage_.busy_ns_ -= time.count();
}

}  // namespace cytra::pipelines
