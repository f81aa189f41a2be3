#include "ops/conv/constant_weights.h"

#include <cstdlib>
#include <functional>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "base/memory.h"
#include "device/convolution.h"

namespace cytra {
namespace {

at::Tensor convolved(const at::Tensor& image, const at::Tensor& weight, bool is_parameter) {
  const std::vector<int64_t> one{1, 1}, none{0, 0};
  return ops::convolution(image, weight, {}, {one, one, one, false, none, 1, is_parameter});
}

class ConstantWeights : public testing::Test {
 protected:
  void SetUp() override { device::set_conv_algorithm(device::ConvAlgorithm::winograd); }
  void TearDown() override { device::set_conv_algorithm(device::ConvAlgorithm::automatic); }
  const at::NoGradGuard no_grad_;
  const at::Tensor image_ = at::randn({1, 32, 12, 12});
  ops::ConstantWeights weights_;
  /// Whether a convolution in the scope of the weights gives what one outside of it gives.
  bool is_right(const at::Tensor& weight, bool is_parameter) {
    const at::Tensor expected = convolved(image_, weight, is_parameter);
    const ops::ConstantWeights::Scope scope(weights_);
    return convolved(image_, weight, is_parameter).equal(expected);
  }
};

TEST_F(ConstantWeights, OfTemporariesAreNotKept) {
  const at::Tensor parameter = at::randn({32, 32, 3, 3});
  for (int i = 1; i < 5; ++i) EXPECT_TRUE(is_right(parameter * i, false)) << i;  // in one memory
  EXPECT_TRUE(is_right(parameter, true));
  EXPECT_TRUE(is_right(parameter.transpose(0, 1), false));
  EXPECT_TRUE(is_right(parameter.slice(0, 0, 16), false));
}

TEST_F(ConstantWeights, AreMadeAnewForAParameterThatHasChanged) {
  at::Tensor parameter = at::randn({32, 32, 3, 3});
  const std::function<void()> changes[] = {[&] { parameter.mul_(2); },
                                           [&] { parameter.slice(0, 3, 4).zero_(); },
                                           [&] {
                                             parameter.set_data(at::randn({32, 32, 3, 3}));
                                           },
                                           [&] { parameter.set_data(parameter.transpose(0, 1)); },
                                           [&] {
                                             const c10::InferenceMode inference_mode;
                                             parameter.add_(1);
                                           },
                                           [&] {
                                             parameter = at::randn({32, 32, 3, 3});
                                           }};
  EXPECT_TRUE(is_right(parameter, true));
  for (const auto& change : changes) {
    change();
    EXPECT_TRUE(is_right(parameter, true));
    EXPECT_TRUE(is_right(parameter, true));
  }
}

TEST_F(ConstantWeights, OfAParameterAreKeptUnlessMemoryIsSpared) {
  const at::Tensor parameter = at::randn({32, 32, 3, 3});
  const auto times_made = [&] {
    int made = 0;
    for (int i = 0; i < 3; ++i) {
      weights_.get(parameter, 36, [&] {
        ++made;
        return parameter;
      });
    }
    return made;
  };
  EXPECT_EXIT(
      {
        spare_memory();
        std::exit(times_made());
      },
      testing::ExitedWithCode(3),
      "");
  EXPECT_EQ(times_made(), 1);
}

}  // namespace
}  // namespace cytra
