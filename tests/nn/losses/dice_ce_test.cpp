#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

TEST(DiceCELoss, ValuesAndGradientsEqualMonai) {
  const test::Golden golden("dice_ce");
  for (const test::GoldenCase& entry : golden.cases(21)) {
    SCOPED_TRACE(entry.name);
    const auto loss = make<nn::Loss>(test::component("monai.losses.DiceCELoss", entry.options()));
    at::Tensor logits = entry.tensor("input");
    logits.requires_grad_(true);
    const at::Tensor value = (*loss)(logits, entry.tensor("target"));
    value.backward();
    EXPECT_LT(test::relative_difference(value.reshape({1}), entry.tensor("loss")), 1e-5);
    EXPECT_LT(test::max_difference(logits.grad(), entry.tensor("grad")), 1e-5);
  }
}

/// CUDA has a deterministic cross-entropy for probabilities alone.
TEST(DiceCELoss, IsTheSameWithDeterministicAlgorithms) {
  const test::Golden golden("dice_ce");
  for (const char* name : {"softmax", "softmax_3d", "softmax_sum", "softmax_label_smoothing"}) {
    SCOPED_TRACE(name);
    const test::GoldenCase& entry = golden.at(name);
    const auto loss = make<nn::Loss>(test::component("DiceCELoss", entry.options()));
    at::Tensor logits = entry.tensor("input");
    logits.requires_grad_(true);
    at::globalContext().setDeterministicAlgorithms(true, false);
    const at::Tensor value = (*loss)(logits, entry.tensor("target"));
    at::globalContext().setDeterministicAlgorithms(false, false);
    value.backward();
    const double expected = entry.tensor("loss").item<double>();
    EXPECT_NEAR(value.item<double>(), expected, 1e-5 * std::max(1.0, std::abs(expected)));
    EXPECT_LT(test::max_difference(logits.grad(), entry.tensor("grad")), 1e-5);
  }
}

TEST(DiceCELoss, RefusesATargetThatDoesNotFit) {
  const auto loss = make<nn::Loss>("{_target_: DiceCELoss}");
  EXPECT_THROW((*loss)(at::zeros({1, 3, 4, 4}), at::zeros({1, 1, 4, 4})), DataError);
}

}  // namespace
}  // namespace cytra
