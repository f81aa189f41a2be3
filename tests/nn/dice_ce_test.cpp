#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

TEST(DiceCELoss, ValuesAndGradientsEqualMonai) {
  const test::Golden golden("dice_ce");
  ASSERT_GE(golden.cases.size(), 10U);
  for (const test::GoldenCase& entry : golden.cases) {
    SCOPED_TRACE(entry.name);
    if (entry.options().has("weight")) continue;  // class weights are not there yet
    const auto loss = make<nn::Loss>(test::component("monai.losses.DiceCELoss", entry.options()));
    at::Tensor logits = entry.tensor("input");
    logits.requires_grad_(true);
    const at::Tensor value = (*loss)(logits, entry.tensor("target"));
    value.backward();
    EXPECT_LT(std::abs(value.item<double>() - entry.tensor("loss").item<double>()), 1e-5);
    EXPECT_LT(test::max_difference(logits.grad(), entry.tensor("grad")), 1e-5);
  }
}

TEST(DiceCELoss, RefusesATargetThatDoesNotFit) {
  const auto loss = make<nn::Loss>("{_target_: DiceCELoss}");
  EXPECT_THROW((*loss)(at::zeros({1, 3, 4, 4}), at::zeros({1, 1, 4, 4})), DataError);
}

}  // namespace
}  // namespace cytra
