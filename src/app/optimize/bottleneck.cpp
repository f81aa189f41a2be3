#include "app/optimize/bottleneck.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace cytra::app {
namespace {

using config::Node;

constexpr double kBound = 0.2;  // share of the time from which on something holds a training back
constexpr double kSeldom = 50;  // steps between two looks that cost next to nothing
constexpr int64_t kMostTimes = 16;  // a batch may grow by

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

double without(const StepTimes& times, double seconds) {
  return times.wall_s / std::max(times.wall_s - seconds, 0.02 * times.wall_s);
}

/// The seconds that a thread takes to load an image.
double loading(const Facts& facts, double miss_share, double TransformTime::*time) {
  double seconds = 0;
  for (const TransformTime& one : facts.transforms)
    seconds += one.*time * (one.is_cached ? miss_share : 1);
  return seconds;
}

/// The seconds of a batch whose images take `load_s` of one thread each: the model by which gains
/// in loading are estimated.
double batch_seconds(const StepTimes& times, const Facts& facts, double load_s, int64_t workers) {
  const double rest =
      (times.wall_s - times.data_s - times.loader_s) / static_cast<double>(times.batches);
  const double load = load_s * static_cast<double>(facts.batch_size);
  if (workers == 0) return rest + load;
  const auto cores = static_cast<double>(facts.cores);
  const double busy =
      facts.is_on_gpu ? 1 : static_cast<double>(std::min(facts.threads, facts.cores));
  return std::max({rest,
                   load / static_cast<double>(std::min(workers, facts.cores)),
                   (load + rest * busy) / cores});
}

void advise_loading(const StepTimes& times, const Facts& facts, std::vector<Advice>& advice) {
  const double now = loading(facts, facts.miss_share, &TransformTime::seconds),
               cached = loading(facts, 0, &TransformTime::seconds);
  const double before = batch_seconds(times, facts, now, facts.num_workers);
  const auto gain = [&](double load_s, int64_t workers) {
    const double after = batch_seconds(times, facts, load_s, workers);
    return after > 0 ? before / after : 1;
  };
  if (facts.num_workers < facts.cores) {
    advice.push_back(
        {{{"data.num_workers", Node::make_integer(facts.cores)}}, gain(now, facts.cores), ""});
  }
  const double all_gb = 1.1e-9 * facts.kept_bytes * static_cast<double>(facts.images);
  if (facts.miss_share > 0 && all_gb > facts.ram_cache_gb && all_gb < facts.free_gb / 2) {
    Node gb = Node::make_integer(static_cast<int64_t>(std::ceil(all_gb)));
    advice.push_back(
        {{{"data.ram_cache_gb", std::move(gb)}},
         gain(cached, facts.num_workers),
         fmt::format("it keeps the images in {:.1f} GB of memory; the gain begins with "
                     "the second epoch",
                     all_gb)});
  }
  if (!facts.lazy_key.empty() && facts.miss_share > 0) {
    advice.push_back(
        {{{facts.lazy_key, Node::make_boolean(true)}},
         // a crop costs next to nothing compared with the whole image
         gain(now - facts.transforms.front().seconds * facts.miss_share, facts.num_workers),
         ""});
  }
}

void advise_callbacks(const StepTimes& times, const Facts& facts, std::vector<Advice>& advice) {
  for (const auto& [name, seconds] : times.callbacks_s) {
    const auto intervals = facts.callback_intervals.find(name);
    if (intervals == facts.callback_intervals.end() || intervals->second.empty()) {
      advice.push_back({{{"callbacks." + name, Node()}},
                        without(times, seconds),
                        "it switches the callback off"});
      continue;
    }
    Advice rarer;
    double share = 0;
    for (const auto& [key, every] : intervals->second) {
      if (static_cast<double>(every) >= kSeldom) continue;
      rarer.changes.emplace_back(fmt::format("callbacks.{}.{}", name, key),
                                 Node::make_integer(static_cast<int64_t>(kSeldom)));
      share = std::max(share, 1 - static_cast<double>(every) / kSeldom);
    }
    rarer.gain = without(times, share * seconds);
    rarer.note = "the callback looks less often";
    if (!rarer.changes.empty()) advice.push_back(std::move(rarer));
  }
}

/// Advises a larger batch, which spreads the fixed cost of a batch over more images.
void advise_batch(const StepTimes& times, const Facts& facts, std::vector<Advice>& advice) {
  const double each = times.fixed_s + rest_of(times);
  const auto wall = [&](int64_t by) {
    return each / static_cast<double>(by) + times.wall_s - each;
  };
  int64_t by = 1;
  while (2 * by <= kMostTimes && 2 * by * facts.batch_size <= facts.most_batch_size &&
         wall(by) > kPromising * wall(2 * by))
    by *= 2;
  if (by == 1) return;
  advice.push_back({{{"data.batch_size", Node::make_integer(by * facts.batch_size)}},
                    times.wall_s / wall(by),
                    fmt::format("steps of {} times the images: the learning rate may have to grow, "
                                "and an epoch has fewer steps",
                                by)});
}

/// Advises other ways to do the same work; only a trial shows which are faster.
void advise_computing(const Facts& facts, std::vector<Advice>& advice) {
  advice.push_back({{{"model.channels_last", Node::make_boolean(!facts.channels_last)}}, 1, ""});
  if (facts.precision == "32" || facts.precision == "32-true") {
    advice.push_back({{{"trainer.precision", Node::make_string("bf16-mixed")}},
                      1,
                      "products have 8 bits instead of 24"});
  }
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
  const double loading_s = loading(facts, facts.miss_share, &TransformTime::cpu_s) *
                           static_cast<double>(times.batches * facts.batch_size);
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
  const Bound largest = *std::max_element(
      avoidable.begin(), avoidable.end(), [&](Bound a, Bound b) { return of(a) < of(b); });
  return of(largest) >= kBound ? largest : Bound::compute;
}

std::vector<Advice> advise(const StepTimes& times, const Facts& facts) {
  std::vector<Advice> advice;
  if (times.data_s + times.loader_s > 0) advise_loading(times, facts, advice);
  if (times.transfer_s > 0 && !facts.pins_memory) {
    advice.push_back({{{"data.pin_memory", Node::make_boolean(true)}},
                      without(times, times.transfer_s / 2),
                      ""});
  }
  advise_callbacks(times, facts, advice);
  if (facts.detects_anomaly) {
    advice.push_back({{{"trainer.detect_anomaly", Node::make_boolean(false)}},
                      without(times, times.anomaly_s),
                      "a NaN's operation is no longer named"});
  }
  if (static_cast<double>(facts.log_every_n_steps) < kSeldom) {
    const double rarer = 1 - static_cast<double>(facts.log_every_n_steps) / kSeldom;
    advice.push_back(
        {{{"trainer.log_every_n_steps", Node::make_integer(static_cast<int64_t>(kSeldom))}},
         // a part of the loop's own time; only a trial shows how much
         without(times, rarer * rest_of(times) / 2),
         "the log has fewer rows"});
  }
  advise_batch(times, facts, advice);
  if (facts.is_on_gpu && !facts.compiles) {
    advice.push_back({{{"model.compile_model", Node::make_boolean(true)}},
                      without(times, rest_of(times)),
                      "steps are recorded once and played"});
  }
  advice.erase(
      std::remove_if(
          advice.begin(), advice.end(), [](const Advice& one) { return one.gain < kPromising; }),
      advice.end());
  advise_computing(facts, advice);
  std::stable_sort(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) {
    return a.gain > b.gain;
  });
  return advice;
}

}  // namespace cytra::app
