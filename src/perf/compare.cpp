#include "perf/compare.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace cytra::perf {
namespace {

constexpr std::size_t kPairsAgain = 5, kAgainst = 4;

/// Pair by pair, until `is_over`.
Verdict time_pairs(const std::function<double()>& before,
                   const std::function<double()>& after,
                   const std::function<bool(const Verdict&)>& is_over) {
  std::vector<TimedPair> pairs;
  Verdict verdict;
  while (!is_over(verdict)) {
    TimedPair pair;
    const bool is_first = pairs.size() % 2 == 0;
    if (is_first) pair.before = before();
    pair.after = after();
    if (!is_first) pair.before = before();
    pairs.push_back(pair);
    verdict = verdict_of(pairs);
  }
  return verdict;
}

}  // namespace

std::optional<std::pair<std::size_t, std::size_t>> median_ranks(std::size_t count) {
  // How many of the values lie below the median is binomial with 1/2.
  const auto n = static_cast<double>(count);
  double below = 0;  // the probability of at most `rank` values
  std::size_t rank = 0;
  for (; rank < count; ++rank) {
    const auto k = static_cast<double>(rank);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                      n * std::log(2.0));
    if (below > 0.025) break;
  }
  if (rank == 0) return std::nullopt;
  return std::make_pair(rank - 1, count - rank);
}

std::string Verdict::text() const {
  return fmt::format("{:.2f} times as fast ({} of {} pairs)", ratio, favour, pairs);
}

Verdict verdict_of(const std::vector<TimedPair>& pairs) {
  Verdict verdict;
  std::vector<double> ratios;
  for (const TimedPair& pair : pairs) {
    if (!(pair.before > 0) || !(pair.after > 0)) {  // nothing was measured
      ratios.push_back(1);
      continue;
    }
    ratios.push_back(pair.before / pair.after);
    if (pair.after < pair.before) verdict.favour += 1;
  }
  verdict.pairs = pairs.size();
  if (pairs.empty()) return verdict;
  std::ranges::sort(ratios);
  verdict.ratio = (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2;
  verdict.is_gain =
      verdict.pairs >= kPairs && verdict.favour == verdict.pairs && verdict.ratio >= kLeastGain;
  return verdict;
}

Verdict time_in_turn(const std::function<double()>& before, const std::function<double()>& after) {
  return time_pairs(before, after, [](const Verdict& so_far) {
    return so_far.favour < so_far.pairs || so_far.pairs >= kPairs;
  });
}

Verdict time_again(const std::function<double()>& before, const std::function<double()>& after) {
  return time_pairs(before, after, [](const Verdict& so_far) {
    return so_far.favour > kPairsAgain - kAgainst || so_far.pairs >= kPairsAgain;
  });
}

bool holds(const Verdict& again) {
  return again.pairs - again.favour < kAgainst || again.ratio * kLeastGain > 1;
}

int64_t smallest_that_pays(const std::map<int64_t, double>& seconds) {
  const auto rate = [](const auto& batch) {
    return static_cast<double>(batch.first) / std::max(batch.second, 1e-9);
  };
  double best = 0;
  for (const auto& batch : seconds) best = std::max(best, rate(batch));
  for (const auto& batch : seconds) {
    if (kLeastGain * rate(batch) >= best) return batch.first;
  }
  return 0;
}

}  // namespace cytra::perf
