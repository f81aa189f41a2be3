#pragma once
// How Cytra measures: the times of a piece of work, and whether one of two ways to do the same work
// is faster. Both of these are timed in turn, so that a machine that slows down meanwhile slows
// both.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

namespace cytra::perf {

/// How often work is done: `timed` runs, and more of them, up to `most`, until they have taken
/// `enough_s` together.
struct Repeats {
  int64_t warmup = 3, timed = 10;
  double enough_s = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
};

struct Times {
  std::vector<double> ms;  // of each timed run, sorted
  double cpu_ms = 0;       // of all threads, the mean of a run
  double at_share(double share) const;
  double median() const;
  double mean() const;
  /// Seconds of the fastest run, which is the one that nothing disturbed.
  double best_s() const { return 1e-3 * ms.front(); }
  /// Where the median of ever more runs lies with 95 % confidence: two of the times, by the sign
  /// test, which supposes nothing about how times are spread. None of fewer than 6 runs.
  std::optional<std::pair<double, double>> interval() const;
};

/// The ranks, from 0, of interval()'s ends among `count` sorted values.
std::optional<std::pair<std::size_t, std::size_t>> median_ranks(std::size_t count);

/// Runs `work`, waiting for the device before the first run and after each.
Times measure(const std::function<void()>& work, const Repeats& repeats, c10::Device device);

/// What the same work took both ways, one right behind the other; in any unit.
struct TimedPair {
  double before = 0, after = 0;
};

constexpr std::size_t kPairs = 8;    // all of them by chance: 1 of 256, 0.4 %, by the sign test
constexpr double kLeastGain = 1.03;  // as many times as fast, or it is not worth a change

struct Verdict {
  double ratio = 1;  // the median of before / after: so many times as fast as before
  std::size_t pairs = 0, favour = 0;
  /// All of kPairs or more pairs favour it, and `ratio` is kLeastGain or more. Otherwise the first
  /// way is kept.
  bool is_gain = false;
  /// "1.31 times as fast (8 of 8 pairs)".
  std::string text() const;
};
Verdict verdict_of(const std::vector<TimedPair>& pairs);

/// Times kPairs pairs, the order alternating; it ends with the first that does not favour `after`,
/// as it cannot be a gain any more. Each function does the work once and returns what it took; both
/// have warmed up before.
Verdict time_in_turn(const std::function<double()>& before, const std::function<double()>& after);

/// Checks a choice that was made earlier: whether it is not slower than the state before it. It
/// fails where 4 of 5 pairs are against it and the median is by kLeastGain. Ends as soon as this
/// is decided; for a good choice mostly with the second pair.
Verdict time_again(const std::function<double()>& before, const std::function<double()>& after);
bool holds(const Verdict& again);

/// The smallest of the batches, whose seconds are given by their size, of which the rate of images
/// is the highest but for noise (kLeastGain); 0: there is none.
int64_t smallest_that_pays(const std::map<int64_t, double>& seconds);

}  // namespace cytra::perf
