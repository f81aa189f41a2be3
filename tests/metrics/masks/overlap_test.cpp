#include <cmath>

#include "base/error.h"
#include "config/registry.h"
#include "metrics/metric.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

using metrics::Metric;

TEST(DiceMetric, EqualsMonai) {
  const test::Golden golden("dice_metric");
  for (const test::GoldenCase& entry : golden.cases(44)) {
    SCOPED_TRACE(entry.name);
    const auto metric = make<Metric>(test::component("DiceMetric", entry.options()));
    metric->update({entry.tensor("prediction"), entry.tensor("target")});
    const std::map<std::string, double> values = metric->compute();
    const at::Tensor expected = entry.tensor("value").to(at::kDouble);
    if (entry.options().get<std::string>("reduction", "mean") == "mean") {
      // Where nothing can be counted the peer says 0; ours says NaN, which no one takes for a bad
      // score.
      const double value = values.at("dice");
      EXPECT_NEAR(std::isnan(value) ? 0 : value, expected.item<double>(), 1e-6);
      continue;
    }
    ASSERT_EQ(static_cast<int64_t>(values.size()) - 1, expected.numel());
    const int64_t first = values.count("dice_class_0") > 0 ? 0 : 1;
    for (int64_t k = 0; k < expected.numel(); ++k) {
      const double value = values.at("dice_class_" + std::to_string(k + first));
      EXPECT_NEAR(std::isnan(value) ? 0 : value, expected[k].item<double>(), 1e-6);
    }
  }
}

TEST(DiceMetric, CountsAcrossUpdates) {
  const auto dice = make<Metric>("{_target_: DiceMetric}");
  EXPECT_TRUE(std::isnan(dice->compute().at("dice")));
  dice->update({at::ones({1, 1, 4, 4}), at::ones({1, 1, 4, 4})});
  dice->update({at::zeros({1, 1, 4, 4}), at::ones({1, 1, 4, 4})});
  EXPECT_DOUBLE_EQ(dice->compute().at("dice"), 0.5);
  dice->reset();
  EXPECT_TRUE(std::isnan(dice->compute().at("dice")));
}

TEST(DiceMetric, RefusesValuesOtherThan0And1) {
  const at::Tensor mask = at::ones({1, 1, 4, 4});
  for (const at::Tensor& wrong : {2 * mask, 0.5 * mask, -mask, mask / 0, mask * NAN}) {
    const auto dice = make<Metric>("{_target_: DiceMetric}");
    dice->update({mask, wrong});
    EXPECT_THROW(dice->compute(), DataError);
    dice->reset();
    dice->update({wrong, mask});
    dice->update({mask, mask});
    EXPECT_THROW(dice->compute(), DataError);
  }
  const auto dice = make<Metric>("{_target_: DiceMetric}");
  dice->expect(3);
  EXPECT_THROW(dice->update({mask, mask}), DataError);  // class numbers, not one-hot
}

}  // namespace
}  // namespace cytra
