#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "metrics/metric.h"
#include "tests/support/golden.h"

namespace cytra::metrics {
namespace {

/// The temperature at which the loss of logits / T is least, by ternary search in float64.
template <class Loss>
double best_temperature(const Loss& loss) {
  double low = std::log(0.1), high = std::log(10.0);
  for (int step = 0; step < 100; ++step) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (loss(std::exp(a)) < loss(std::exp(b)) ? high : low) =
        loss(std::exp(a)) < loss(std::exp(b)) ? b : a;
  }
  return std::exp(low);
}

std::shared_ptr<Metric> temperature_scaling(bool multilabel) {
  return make<Metric>(std::string("{_target_: TemperatureScaling, multilabel: ") +
                      (multilabel ? "true}" : "false}"));
}

TEST(TemperatureScaling, FindsTheLeastLikelihoodOfClasses) {
  at::manual_seed(1);
  for (const double sure : {0.4, 1.0, 3.0}) {
    // Classes are drawn by the probabilities of logits, and the model is `sure` times as sure.
    const at::Tensor logits = at::randn({4, 3, 20, 30}, at::kDouble) * 1.5;
    const at::Tensor p = logits.softmax(1);
    const at::Tensor classes =
        at::multinomial(p.movedim(1, -1).reshape({-1, 3}), 1).view({4, 1, 20, 30});
    const at::Tensor truth = classes.eq(at::arange(3).view({1, 3, 1, 1}));
    const at::Tensor mask = at::rand({4, 1, 20, 30}).gt(0.3);
    const auto metric = temperature_scaling(false);
    metric->expect(3);
    const at::Tensor given = (logits * sure).softmax(1).to(at::kFloat);
    for (int64_t n = 0; n < 4; ++n)  // in two batches
      metric->update({given.slice(0, n, n + 1), truth.slice(0, n, n + 1), mask.slice(0, n, n + 1)});
    const double expected = best_temperature([&](double t) {
      const at::Tensor losses = -(logits * (sure / t)).log_softmax(1).gather(1, classes);
      return (losses * mask).sum().item<double>();
    });
    EXPECT_NEAR(metric->compute().at("temperature") / expected, 1, 5e-3) << sure;
    EXPECT_NEAR(expected / sure, 1, 0.1);
  }
}

TEST(TemperatureScaling, FindsTheLeastLikelihoodOfMasks) {
  at::manual_seed(2);
  const at::Tensor logits = at::randn({2, 2, 40, 30}, at::kDouble) * 2;
  const at::Tensor truth = at::rand({2, 2, 40, 30}, at::kDouble).lt(logits.sigmoid());
  for (const bool multilabel : {true, false}) {  // of one mask there is no difference
    const at::Tensor z = multilabel ? logits : logits.slice(1, 0, 1),
                     is = multilabel ? truth : truth.slice(1, 0, 1);
    const auto metric = temperature_scaling(multilabel);
    metric->expect(z.size(1));
    metric->update({(z * 2).sigmoid().to(at::kFloat), is});
    const double expected = best_temperature([&](double t) {
      const at::Tensor scaled = z * (2 / t);
      return (at::softplus(scaled) - scaled * is).sum().item<double>();
    });
    EXPECT_NEAR(metric->compute().at("temperature") / expected, 1, 5e-3);
    metric->reset();
    EXPECT_TRUE(std::isnan(metric->compute().at("temperature")));
  }
}

}  // namespace
}  // namespace cytra::metrics
