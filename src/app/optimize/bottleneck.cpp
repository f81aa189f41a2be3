#include "app/optimize/bottleneck.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "app/optimize/settings.h"

namespace cytra::app {
namespace {

using config::Node;

constexpr double kWorthwhile = 0.05;  // share of the time that is worth a trial
constexpr int64_t kSeldom = 50;       // steps between two looks that cost next to nothing

double of_callbacks(const StepTimes& times) {
  double sum = 0;
  for (const auto& [name, seconds] : times.callbacks_s) sum += seconds;
  return sum;
}

/// The time of neither loading, nor computing, nor callbacks: the loop itself and its log.
double rest_of(const StepTimes& times) {
  return std::max(0.0,
                  times.wall_s - times.data_s - times.transfer_s - times.sync_s - times.compute_s -
                      of_callbacks(times));
}

using Advices = std::vector<Advice>;

void add(Advices& advice, const std::string& key, Node value, std::string note = "") {
  advice.push_back({{{key, std::move(value)}}, std::move(note)});
}

/// Advises the value that a search tries first.
void add_first(Advices& advice, const Facts& facts, const std::string& key, std::string note = "") {
  const std::vector<Node> others = others_of(key, facts);
  if (!others.empty()) add(advice, key, others.front(), std::move(note));
}

void advise_loading(const Facts& facts, Advices& advice) {
  if (facts.num_workers < facts.cores) add_first(advice, facts, key::kWorkers);
  const double all_gb = 1.1e-9 * facts.kept_bytes * static_cast<double>(facts.images);
  if (facts.miss_share > 0 && all_gb > facts.ram_cache_gb && all_gb < facts.free_gb / 2) {
    add(advice,
        "data.ram_cache_gb",
        Node::make_integer(static_cast<int64_t>(std::ceil(all_gb))),
        fmt::format("it keeps the images in {:.1f} GB of memory; the gain begins with the second "
                    "epoch",
                    all_gb));
  }
  if (!facts.lazy_key.empty() && facts.miss_share > 0)
    add(advice, facts.lazy_key, Node::make_boolean(true));
}

/// Advises on what a host does between two steps, the longest first.
void advise_host(const StepTimes& times, const Facts& facts, Advices& advice) {
  std::vector<std::pair<double, std::string>> callbacks;
  for (const auto& [name, seconds] : times.callbacks_s) {
    if (seconds >= kWorthwhile * times.wall_s) callbacks.emplace_back(seconds, name);
  }
  std::sort(callbacks.rbegin(), callbacks.rend());
  for (const auto& [seconds, name] : callbacks) {
    const auto intervals = facts.callback_intervals.find(name);
    if (intervals == facts.callback_intervals.end() || intervals->second.empty()) {
      add(advice, "callbacks." + name, Node(), "it switches the callback off");
      continue;
    }
    Advice rarer{{}, "the callback looks less often"};
    for (const auto& [key, every] : intervals->second) {
      if (every < kSeldom)
        rarer.changes.emplace_back(fmt::format("callbacks.{}.{}", name, key),
                                   Node::make_integer(kSeldom));
    }
    if (!rarer.changes.empty()) advice.push_back(std::move(rarer));
  }
  if (facts.detects_anomaly)
    add(advice,
        "trainer.detect_anomaly",
        Node::make_boolean(false),
        "a NaN's operation is no longer named");
}

/// Advises on what a batch of any size takes: more images in one, and less to do for each.
void advise_launches(const Facts& facts, Advices& advice) {
  add_first(advice,
            facts,
            key::kBatch,
            fmt::format("steps of {} images instead of {}: the learning rate may have to grow, "
                        "and an epoch has fewer steps",
                        facts.best_batch_size,
                        facts.batch_size));
  if (facts.is_on_gpu && !facts.compiles)
    add(advice,
        "model.compile_model",
        Node::make_boolean(true),
        "steps are recorded once and played");
  if (facts.log_every_n_steps < kSeldom)
    add(advice, "trainer.log_every_n_steps", Node::make_integer(kSeldom), "the log has fewer rows");
}

/// Advises other ways to do the same work.
void advise_computing(const Facts& facts, Advices& advice) {
  add_first(advice, facts, key::kLayout);
  add_first(advice, facts, key::kPrecision, "products have 8 bits instead of 24");
}

}  // namespace

Shares StepTimes::shares() const {
  Shares shares{data_s + loader_s,
                transfer_s,
                sync_s + of_callbacks(*this) + anomaly_s,
                rest_of(*this) + fixed_s,
                std::max(0.0, compute_s - fixed_s - anomaly_s - loader_s)};
  const double all = shares.data + shares.transfer + shares.sync + shares.launch + shares.compute;
  if (all <= 0) return {};
  for (double* share :
       {&shares.data, &shares.transfer, &shares.sync, &shares.launch, &shares.compute})
    *share /= all;
  return shares;
}

void share_cores(const Facts& facts, StepTimes& times) {
  if (facts.is_on_gpu || facts.num_workers == 0) return;
  const auto cores = static_cast<double>(facts.cores);
  double loading_s = 0;
  for (const TransformTime& one : facts.transforms)
    loading_s += one.cpu_s * (one.is_cached ? facts.miss_share : 1);
  loading_s *= static_cast<double>(times.batches * facts.batch_size);
  const double busy = loading_s + static_cast<double>(facts.threads) * times.compute_s;
  if (busy > cores * times.wall_s)  // each had to wait for the other
    times.loader_s = std::min(loading_s / cores, times.compute_s - times.fixed_s - times.anomaly_s);
}

const char* name_of(Bound bound) {
  constexpr std::array names{
      "data-bound", "transfer-bound", "sync-bound", "launch-bound", "compute-bound"};
  return names.at(static_cast<std::size_t>(bound));
}

double Shares::of(Bound bound) const {
  const std::array all{data, transfer, sync, launch, compute};
  return all.at(static_cast<std::size_t>(bound));
}

Bound Shares::bound() const {
  const auto avoidable = {Bound::data, Bound::transfer, Bound::sync, Bound::launch};
  const Bound largest =
      *std::ranges::max_element(avoidable, {}, [&](Bound one) { return of(one); });
  return of(largest) >= kBound ? largest : Bound::compute;
}

std::vector<Advice> advise(const StepTimes& times, const Facts& facts) {
  const Shares shares = times.shares();
  std::vector<Bound> bounds{Bound::data, Bound::transfer, Bound::sync, Bound::launch};
  std::ranges::stable_sort(bounds, std::greater(), [&](Bound one) { return shares.of(one); });
  Advices advice;
  for (const Bound bound : bounds) {
    if (shares.of(bound) < kBound) break;
    if (bound == Bound::data) advise_loading(facts, advice);
    if (bound == Bound::transfer && !facts.pins_memory)
      add(advice, "data.pin_memory", Node::make_boolean(true));
    if (bound == Bound::sync) advise_host(times, facts, advice);
    if (bound == Bound::launch) advise_launches(facts, advice);
  }
  if (advice.empty()) advise_computing(facts, advice);
  return advice;
}

}  // namespace cytra::app
