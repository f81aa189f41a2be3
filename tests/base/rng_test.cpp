#include "base/rng.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace cytra {
namespace {

TEST(Rng, IsAFunctionOfItsKey) {
  Rng a(1, 2, 3), b(1, 2, 3), c(1, 2, 4), d(2, 1, 3);
  const uint64_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, c.next());
  EXPECT_NE(first, d.next());
}

/// Mean and variance of n draws.
std::pair<double, double> moments(const std::function<double()>& draw, int n = 40000) {
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  return {sum / n, squares / n - sum / n * sum / n};
}

TEST(Rng, HasTheRightDistributions) {
  Rng rng(5);
  auto [mean, variance] = moments([&] { return rng.uniform(); });
  EXPECT_NEAR(mean, 0.5, 0.01);
  EXPECT_NEAR(variance, 1.0 / 12, 0.005);
  std::tie(mean, variance) = moments([&] { return rng.normal(); });
  EXPECT_NEAR(mean, 0, 0.03);
  EXPECT_NEAR(variance, 1, 0.05);
  for (const double expected : {3.0, 100.0}) {
    std::tie(mean, variance) = moments([&] { return rng.poisson(expected); });
    EXPECT_NEAR(mean, expected, 0.02 * expected);
    EXPECT_NEAR(variance, expected, 0.06 * expected);
  }
  int counts[7] = {};
  for (int i = 0; i < 70000; ++i) ++counts[rng.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

}  // namespace
}  // namespace cytra
