#include "ops/linear/int8_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cytra::ops {
namespace {

double relative_rms(const at::Tensor& made, const at::Tensor& expected) {
  return ((made - expected).square().mean() / expected.square().mean()).sqrt().item<double>();
}

TEST(Int8Weights, RoundWeightsByRowAndInputsByCall) {
  at::manual_seed(0);
  const at::NoGradGuard no_grad;
  const at::Tensor bias = at::randn({24});
  at::Tensor weight = at::randn({24, 64});
  weight[3] *= 1000;  // a scale for all rows would leave nothing of the others
  Int8Weights weights;
  const Int8Weights::Scope scope(weights);
  for (const double size :
       {1e-3, 1.0, 1e3}) {  // and a range that was measured once, of the others' inputs
    const at::Tensor x = size * at::randn({2, 5, 64});
    const at::Tensor made = ops::linear(x, weight, bias), expected = at::linear(x, weight, bias);
    EXPECT_EQ(made.scalar_type(), at::kFloat);
    EXPECT_FALSE(made.equal(expected));
    for (int64_t row = 0; row < 24; ++row)
      EXPECT_LT(
          relative_rms(made.select(-1, row) - bias[row], expected.select(-1, row) - bias[row]),
          0.05)  // 1 % of rounding, of ten values
          << size << ", row " << row;
  }
  EXPECT_EQ(weights.count(), 1);
  ops::linear(at::randn({2, 64}), weight.slice(0, 0, 8).clone(), {});
  EXPECT_EQ(weights.count(), 2);
}

TEST(Int8Weights, FollowAWeightThatChangesAndEachBias) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({4, 32}), bias = at::randn({8});
  at::Tensor weight = at::randn({8, 32});
  Int8Weights weights;
  const Int8Weights::Scope scope(weights);
  const auto expect_right = [&](const at::Tensor& w, const at::Tensor& b) {
    EXPECT_LT(relative_rms(ops::linear(x, w, b), at::linear(x, w, b)), 0.05);
  };
  expect_right(weight, bias);
  expect_right(weight, bias + 100);
  expect_right(weight, {});
  expect_right(weight.slice(0, 0, 4), {});
  weight.neg_();
  expect_right(weight, bias);
  for (int i = 1; i < 4; ++i) expect_right(weight * i, bias);
}

TEST(Int8Weights, OutsideOfTheirScopeNothingChanges) {
  const at::Tensor x = at::randn({2, 8}), weight = at::randn({4, 8});
  Int8Weights weights;
  { const Int8Weights::Scope scope(weights); }
  EXPECT_TRUE(ops::linear(x, weight, {}).equal(at::linear(x, weight)));
}

}  // namespace
}  // namespace cytra::ops
