#include "app/benchmark/measure.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace cytra::app {
namespace {

using Ranks = std::pair<std::size_t, std::size_t>;

TEST(BenchmarkTimes, TheMediansIntervalIsTheSignTests) {
  for (const std::size_t count : {0U, 1U, 2U, 5U}) EXPECT_FALSE(median_ranks(count)) << count;
  // Tables of the sign test at 5 %, ranks from 1: 6: 1, 10: 2, 20: 6, 50: 18, 100: 40.
  EXPECT_EQ(median_ranks(6), Ranks(0, 5));
  EXPECT_EQ(median_ranks(10), Ranks(1, 8));
  EXPECT_EQ(median_ranks(20), Ranks(5, 14));
  EXPECT_EQ(median_ranks(50), Ranks(17, 32));
  EXPECT_EQ(median_ranks(100), Ranks(39, 60));
}

TEST(BenchmarkTimes, TheIntervalHoldsTheMedianInNineteenOfTwentyRuns) {
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

TEST(BenchmarkTimes, MedianAndShares) {
  Times times;
  times.ms = {1, 2, 4, 10};
  EXPECT_EQ(times.median(), 3);
  EXPECT_EQ(times.at_share(0.95), 10);
  times.ms = {1, 2, 4};
  EXPECT_EQ(times.median(), 2);
}

TEST(BenchmarkTimes, WarmUpIsNotTimed) {
  int runs = 0;
  const Times times = measure([&] { ++runs; }, {2, 7}, c10::kCPU);
  EXPECT_EQ(runs, 9);
  EXPECT_EQ(times.ms.size(), 7U);
  EXPECT_TRUE(std::is_sorted(times.ms.begin(), times.ms.end()));
}

}  // namespace
}  // namespace cytra::app
