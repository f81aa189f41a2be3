#include "metrics/dice.h"

#include <cmath>

#include <ATen/ATen.h>

#include "tests/support/golden.h"

namespace cytra {
namespace {

TEST(Dice, EqualsMonai) {
  const test::Golden golden("dice_metric");
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases) {
    if (entry.options().get<std::string>("reduction", "mean") != "mean") continue;
    SCOPED_TRACE(entry.name);
    metrics::Dice dice(entry.options().get<bool>("include_background", true),
                       entry.options().get<bool>("ignore_empty", true));
    dice.update(entry.tensor("prediction"), entry.tensor("target"));
    const double expected = entry.tensor("value").item<double>();
    // Where nothing can be counted the peer says 0; ours says NaN, which no one takes for a bad
    // score.
    if (std::isnan(dice.compute())) {
      EXPECT_EQ(expected, 0);
    } else {
      EXPECT_NEAR(dice.compute(), expected, 1e-6);
    }
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

TEST(Dice, CountsAcrossUpdates) {
  metrics::Dice dice;
  dice.update(at::ones({1, 1, 4, 4}), at::ones({1, 1, 4, 4}));
  dice.update(at::zeros({1, 1, 4, 4}), at::ones({1, 1, 4, 4}));
  EXPECT_DOUBLE_EQ(dice.compute(), 0.5);
  dice.reset();
  EXPECT_TRUE(std::isnan(dice.compute()));
}

}  // namespace
}  // namespace cytra
