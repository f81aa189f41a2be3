#pragma once
// Whether one of two ways to do the same work is faster. Both are timed in turn, so that a machine
// that slows down meanwhile slows both.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cytra::perf {

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

/// The ranks, from 0, of the ends of the median's interval (Times::interval()) among `count` sorted
/// values.
std::optional<std::pair<std::size_t, std::size_t>> median_ranks(std::size_t count);

}  // namespace cytra::perf
