#include "perf/measure.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace cytra::perf {
namespace {

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
