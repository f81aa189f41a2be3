#include "app/optimize/search.h"

#include <algorithm>
#include <numeric>

#include "device/error.h"

namespace cytra::app {
namespace {

double sum_of(const std::vector<double>& values, std::size_t count) {
  return std::accumulate(values.data(), values.data() + count, 0.0);
}

/// The seconds of an image, or of a validation; 0: none was timed.
double time_of(const Figures& measured, Aim aim) {
  if (aim == Aim::validation) return measured.validation_s;
  return measured.times.rate() > 0 ? 1 / measured.times.rate() : 0;
}

Tried time_both(const TimedRun& before, const std::function<TimedRun()>& make_after, Aim aim) {
  Tried tried;
  Figures &now = tried.measured, was;
  const auto verdict = device::if_it_fits([&] {
    const TimedRun after = make_after();
    return perf::time_in_turn([&] { return time_of(was = before(), aim); },
                              [&] { return time_of(now = after(), aim); });
  });
  tried.fits = verdict.has_value();
  tried.verdict = verdict.value_or(perf::Verdict());
  const std::size_t steps = std::min(now.losses.size(), was.losses.size());
  if (now.facts.batch_size == was.facts.batch_size && steps > 0)
    tried.loss_difference = sum_of(now.losses, steps) / sum_of(was.losses, steps) - 1;
  return tried;
}

/// Whether a key that speeds this up has another value, or none, among those that were kept.
bool differ(const Changes& without, const Changes& kept, Aim aim) {
  return std::ranges::any_of(without, [&](const Change& change) {
    return aim_of(change.first) == aim && std::ranges::none_of(kept, [&](const Change& other) {
             return text_of(other) == text_of(change);
           });
  });
}

}  // namespace

MakeRun runs_of(const Trials& trials, double seconds) {
  return [&trials, seconds](const Changes& changes, Aim /*aim*/) -> TimedRun {
    return [&trials, changes, seconds] { return trials.measure(changes, seconds); };
  };
}

const TimedRun& Search::best_run(Aim aim) {
  if (aim != aim_) best_run_ = {};  // its memory is free for the other one
  aim_ = aim;
  if (!best_run_) best_run_ = make_(best_, aim);
  return best_run_;
}

Tried Search::take(const std::string& key, const config::Node& value) {
  const Aim aim = aim_of(key);
  const Changes after = with(best_, key, value);
  TimedRun run;
  Tried tried = time_both(
      best_run(aim), [&] { return run = make_(after, aim); }, aim);
  if (!tried.verdict.is_gain) return tried;
  best_ = after;
  best_run_ = std::move(run);
  newest_ = tried.measured;
  return tried;
}

Tried Search::compare(const Changes& before, const Changes& after, Aim aim) const {
  return time_both(
      make_(before, aim), [&] { return make_(after, aim); }, aim);
}

std::string why_dropped(const MakeRun& make, const Changes& without, const Changes& kept) {
  for (const Aim aim : {Aim::training, Aim::validation}) {
    if (!differ(without, kept, aim)) continue;
    const auto again = device::if_it_fits([&] {
      const TimedRun before = make(without, aim), after = make(kept, aim);
      return perf::time_again([&] { return time_of(before(), aim); },
                              [&] { return time_of(after(), aim); });
    });
    if (!again || !perf::holds(*again)) return again ? again->text() : "does not fit into memory";
  }
  return "";
}

}  // namespace cytra::app
