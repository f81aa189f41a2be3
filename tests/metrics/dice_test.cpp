#include "metrics/dice.h"

#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

TEST(Dice, EqualsMonai) {
  const test::Golden golden("dice_metric");
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases(44)) {
    SCOPED_TRACE(entry.name);
    const bool background = entry.options().get<bool>("include_background", true);
    metrics::Dice dice(entry.tensor("target").size(1),
                       background,
                       entry.options().get<bool>("ignore_empty", true));
    dice.update(entry.tensor("prediction"), entry.tensor("target"));
    ++compared;
    if (entry.options().get<std::string>("reduction", "mean") == "mean_batch") {
      const at::Tensor expected = entry.tensor("value").to(at::kDouble);
      const std::vector<double> classes = dice.per_class();
      const std::size_t first = background ? 0 : 1;
      ASSERT_EQ(classes.size() - first, static_cast<std::size_t>(expected.numel()));
      for (std::size_t k = first; k < classes.size(); ++k) {  // NaN: the peer says 0
        const double peer = expected[static_cast<int64_t>(k - first)].item<double>();
        EXPECT_NEAR(std::isnan(classes[k]) ? 0 : classes[k], peer, 1e-6);
      }
      continue;
    }
    const double expected = entry.tensor("value").item<double>();
    // Where nothing can be counted the peer says 0; ours says NaN, which no one takes for a bad
    // score.
    if (std::isnan(dice.compute())) {
      EXPECT_EQ(expected, 0);
    } else {
      EXPECT_NEAR(dice.compute(), expected, 1e-6);
    }
  }
  EXPECT_GE(compared, 30);
}

TEST(Dice, CountsAcrossUpdates) {
  metrics::Dice dice(1);
  dice.update(at::ones({1, 1, 4, 4}), at::ones({1, 1, 4, 4}));
  dice.update(at::zeros({1, 1, 4, 4}), at::ones({1, 1, 4, 4}));
  EXPECT_DOUBLE_EQ(dice.compute(), 0.5);
  dice.reset();
  EXPECT_TRUE(std::isnan(dice.compute()));
}

TEST(Dice, RefusesValuesOtherThan0And1) {
  const at::Tensor mask = at::ones({1, 1, 4, 4});
  for (const at::Tensor& wrong : {2 * mask, 0.5 * mask, -mask, mask / 0, mask * NAN}) {
    metrics::Dice dice(1);
    dice.update(mask, wrong);
    EXPECT_THROW(dice.compute(), DataError);
    EXPECT_THROW(dice.per_class(), DataError);
    dice.reset();
    dice.update(wrong, mask);
    dice.update(mask, mask);
    EXPECT_THROW(dice.compute(), DataError);
  }
  metrics::Dice dice(3);
  EXPECT_THROW(dice.update(mask, mask), DataError);  // class numbers, not one-hot
}

TEST(Dice, CountsImagesThatHaveAClass) {
  at::Tensor truth = at::zeros({3, 3, 4, 4}, at::kBool);
  truth[0][0].fill_(true);
  truth[1][1].fill_(true);
  truth[2][1].fill_(true);
  metrics::Dice dice(3, /*include_background=*/false);
  dice.update(truth, truth);
  const metrics::Dice::Counts counts = dice.counts();
  EXPECT_EQ(counts.images, 3);
  EXPECT_EQ(counts.with_foreground, 2);
  EXPECT_EQ(counts.with_class, (std::vector<int64_t>{0, 2, 0}));
}

}  // namespace
}  // namespace cytra
