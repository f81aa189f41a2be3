#include "base/timers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace cytra {
namespace {
using std::chrono::nanoseconds;

struct Timers : ::testing::Test {
  void SetUp() override { timers::enable(); }
  void TearDown() override {
    timers::enable(false);
    timers::clear();
  }
};

TEST_F(Timers, TellStatisticsOfEachName) {
  Rng rng(1, 2);
  std::vector<double> times;
  for (int i = 0; i < 999; ++i) {
    const double ns = std::pow(10, 2 + 6 * rng.uniform());  // 100 ns to 100 ms
    times.push_back(std::floor(ns));
    timers::add("work", nanoseconds(static_cast<int64_t>(ns)));
  }
  timers::add("once", nanoseconds(2500));
  timers::add("long", nanoseconds(50000000));
  std::sort(times.begin(), times.end());
  const auto all = timers::statistics();
  ASSERT_EQ(all.size(), 3U);
  const timers::Statistics& work = all.at("work");
  const double total = std::accumulate(times.begin(), times.end(), 0.0);
  EXPECT_EQ(work.count, 999);
  EXPECT_NEAR(work.total_s, 1e-9 * total, 1e-15 * total);
  EXPECT_NEAR(work.mean_s, work.total_s / 999, 1e-12);
  EXPECT_NEAR(work.p50_s / (1e-9 * times[499]), 1, 0.022);
  EXPECT_NEAR(work.p95_s / (1e-9 * times[949]), 1, 0.022);
  EXPECT_DOUBLE_EQ(work.max_s, 1e-9 * times.back());
  EXPECT_DOUBLE_EQ(all.at("once").p50_s, 2.5e-6) << "no bin beyond what there was";
  const std::string table = timers::table();
  EXPECT_LT(table.find("work"), table.find("long")) << "the longest first:\n" << table;
  EXPECT_EQ(table.find("once"), std::string::npos) << "next to nothing:\n" << table;
}

TEST_F(Timers, CountInAllThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) {
        const timers::Scope outer("outer"), inner(i % 2 == 0 ? "even" : "odd");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto all = timers::statistics();
  EXPECT_EQ(all.at("outer").count, 4000);
  EXPECT_EQ(all.at("even").count, 2000);
  EXPECT_EQ(all.at("odd").count, 2000);
  EXPECT_GE(all.at("outer").total_s, all.at("even").total_s);
}

TEST_F(Timers, OffMeasureNothing) {
  timers::enable(false);
  {
    const timers::Scope scope("work");
    timers::enable();  // too late for this one
  }
  timers::enable(false);
  timers::add("work", nanoseconds(5));
  EXPECT_TRUE(timers::statistics().empty());
  EXPECT_EQ(timers::table(), "");
}

}  // namespace
}  // namespace cytra
