#pragma once
// Whether one of two ways to do the same work is faster: both are timed in turn, so that a machine
// that slows down meanwhile slows both.
#include <cstddef>
#include <functional>
#include <string>
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
  /// All of kPairs or more pairs favour it, and `ratio` is kLeastGain or more. Whatever else comes
  /// out, the way it was is kept.
  bool is_gain = false;
  /// "1.31 times as fast (8 of 8 pairs)".
  std::string text() const;
};
Verdict verdict_of(const std::vector<TimedPair>& pairs);

/// Times kPairs pairs, the order alternating; it ends with the first that does not favour `after`,
/// as it cannot be a gain any more. Each function does the work once and returns what it took; both
/// have warmed up before.
Verdict time_in_turn(const std::function<double()>& before, const std::function<double()>& after);

/// The other question, of a choice that was made earlier: whether it is not slower than what was
/// there before it. It does not hold where 4 of 5 pairs are against it and the median by
/// kLeastGain. Ends as soon as that is known: of a good choice mostly with the second pair.
Verdict time_again(const std::function<double()>& before, const std::function<double()>& after);
bool holds(const Verdict& again);

}  // namespace cytra::perf
