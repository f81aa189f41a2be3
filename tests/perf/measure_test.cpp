#include "perf/measure.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace cytra::perf {
namespace {

using Ranks = std::pair<std::size_t, std::size_t>;

TEST(Times, TheMediansIntervalIsTheSignTests) {
  for (const std::size_t count : {0U, 1U, 2U, 5U}) EXPECT_FALSE(median_ranks(count)) << count;
  // Tables of the sign test at 5 %, ranks from 1: 6: 1, 10: 2, 20: 6, 50: 18, 100: 40.
  EXPECT_EQ(median_ranks(6), Ranks(0, 5));
  EXPECT_EQ(median_ranks(10), Ranks(1, 8));
  EXPECT_EQ(median_ranks(20), Ranks(5, 14));
  EXPECT_EQ(median_ranks(50), Ranks(17, 32));
  EXPECT_EQ(median_ranks(100), Ranks(39, 60));
}

TEST(Times, TheIntervalHoldsTheMedianInNineteenOfTwentyRuns) {
  Rng rng(1);
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    Times times;
    for (int i = 0; i < 15; ++i) {
      const double u = rng.uniform();
      times.ms.push_back(u * u * u);  // skewed; the median is 1/8
    }
    std::sort(times.ms.begin(), times.ms.end());
    const auto interval = times.interval();
    ASSERT_TRUE(interval);
    held += interval->first <= 0.125 && 0.125 <= interval->second ? 1 : 0;
  }
  EXPECT_GT(held, kTrials * 0.945);
  EXPECT_LT(held, kTrials * 0.98) << "wider than it need be: 4 and 12 of 15 hold it in 96.5 %";
}

TEST(Times, MedianAndShares) {
  Times times;
  times.ms = {1, 2, 4, 10};
  EXPECT_EQ(times.median(), 3);
  EXPECT_EQ(times.at_share(0.95), 10);
  times.ms = {1, 2, 4};
  EXPECT_EQ(times.median(), 2);
}

TEST(Times, WarmUpIsNotTimed) {
  int runs = 0;
  const Times times = measure([&] { ++runs; }, {2, 7}, c10::kCPU);
  EXPECT_EQ(runs, 9);
  EXPECT_EQ(times.ms.size(), 7U);
  EXPECT_TRUE(std::is_sorted(times.ms.begin(), times.ms.end()));
}

TEST(Times, RunsUntilTheyHaveTakenEnough) {
  const auto runs_of = [](const Repeats& repeats) {
    int64_t runs = 0;
    measure([&] { ++runs; }, repeats, c10::kCPU);
    return runs;
  };
  EXPECT_EQ(runs_of({0, 2, 1e9, 5}), 5);
  EXPECT_EQ(runs_of({1, 6, 1e9, 5}), 7) << "`timed` at the least";
  EXPECT_GT(runs_of({0, 1, 1e-3}), 1);
  EXPECT_EQ(runs_of({0, 1, 0}), 1);
}

TEST(Times, TheSmallestBatchThatPaysIsAsFastAsAnyButForNoise) {
  EXPECT_EQ(smallest_that_pays({{1, 1}, {2, 1.5}, {4, 2}, {8, 3.95}}), 4);
  EXPECT_EQ(smallest_that_pays({{1, 1}}), 1);
  EXPECT_EQ(smallest_that_pays({}), 0);
}

/// Work that takes so long, each time times a number of noise in 1 - noise ... 1 + noise.
struct Work {
  double seconds, noise;
  Rng& rng;
  int runs = 0;
  double operator()() {
    ++runs;
    return seconds * (1 + noise * (2 * rng.uniform() - 1));
  }
};

Verdict in_turn(Work& before, Work& after) {
  return time_in_turn([&] { return before(); }, [&] { return after(); });
}

TEST(TimeInTurn, IdenticalWorkIsNoGain) {
  Rng rng(1);
  for (const double noise : {0.0, 0.02, 0.3, 0.9}) {
    int gains = 0;
    for (int trial = 0; trial < 2000; ++trial) {
      Work before{1, noise, rng}, after{1, noise, rng};
      gains += in_turn(before, after).is_gain ? 1 : 0;
    }
    EXPECT_LE(gains, 20) << "by the sign test 8 of 2000 on average, with a noise of " << noise;
  }
  Work before{1, 0, rng}, after{1, 0, rng};
  const Verdict tie = in_turn(before, after);
  EXPECT_EQ(tie.ratio, 1);
  EXPECT_EQ(before.runs + after.runs, 2) << "a tie is known with the first pair";
}

TEST(TimeInTurn, ALoadThatComesAndGoesIsNoGain) {
  for (int begin = 0; begin < 16; ++begin) {
    int run = 0;
    const auto work = [&] { return run++ >= begin && run % 5 != 0 ? 4.4 : 1.0; };  // 48 and 211 ms
    EXPECT_FALSE(time_in_turn(work, work).is_gain) << "busy from run " << begin;
  }
  double slower = 1;  // a machine that slows down, or speeds up, all the time
  for (const double by : {1.1, 0.9}) {
    const auto drift = [&] { return slower *= by; };
    EXPECT_FALSE(time_in_turn(drift, drift).is_gain) << by;
  }
}

TEST(TimeInTurn, ATrueGainIsFound) {
  Rng rng(2);
  for (const double noise : {0.0, 0.05, 0.12}) {
    for (int trial = 0; trial < 200; ++trial) {
      Work before{1.3, noise, rng}, after{1, noise, rng};
      const Verdict verdict = in_turn(before, after);
      EXPECT_TRUE(verdict.is_gain) << verdict.text();
      EXPECT_NEAR(verdict.ratio, 1.3, 2 * noise + 1e-9);
      EXPECT_EQ(before.runs, 8);
      EXPECT_EQ(after.runs, 8);
    }
  }
}

TEST(TimeInTurn, WhatIsSlowerOrHardlyFasterIsNoGain) {
  Rng rng(3);
  Work before{1, 0, rng}, slower{1.08, 0, rng}, hardly{0.98, 0, rng};
  EXPECT_FALSE(in_turn(before, slower).is_gain);
  const Verdict verdict = in_turn(before, hardly);
  EXPECT_EQ(verdict.favour, 8U);
  EXPECT_FALSE(verdict.is_gain) << "2 % are not worth a change";
  EXPECT_EQ(verdict.text(), "1.02 times as fast (8 of 8 pairs)");
}

TEST(TimeInTurn, WhatWasNotMeasuredIsNoGain) {
  EXPECT_FALSE(time_in_turn([] { return 1.0; }, [] { return 0.0; }).is_gain);
  EXPECT_FALSE(time_in_turn([] { return 0.0; }, [] { return 1.0; }).is_gain);
  EXPECT_FALSE(verdict_of({}).is_gain);
  EXPECT_FALSE(verdict_of(std::vector<TimedPair>(7, {2, 1})).is_gain) << "7 of 7 may be chance";
}

TEST(TimeAgain, AChoiceHoldsUnlessItIsSlower) {
  Rng rng(4);
  const auto again = [&](double before_s, double after_s, double noise) {
    Work before{before_s, noise, rng}, after{after_s, noise, rng};
    const Verdict verdict = time_again([&] { return before(); }, [&] { return after(); });
    EXPECT_LE(after.runs, 5);
    return holds(verdict);
  };
  for (int trial = 0; trial < 200; ++trial) {
    EXPECT_TRUE(again(1.3, 1, 0.1));
    EXPECT_TRUE(again(1, 1, 0)) << "as fast: nothing is lost";
    EXPECT_FALSE(again(1, 1.3, 0.1)) << "chosen while the machine was busy";
    EXPECT_TRUE(again(1, 1.01, 0)) << "1 %";
  }
  Work before{2, 0, rng}, after{1, 0, rng};
  time_again([&] { return before(); }, [&] { return after(); });
  EXPECT_EQ(before.runs + after.runs, 4) << "a good one is known with two pairs";
}

}  // namespace
}  // namespace cytra::perf
