#include "ops/conv/winograd/winograd.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "device/convolution.h"
#include "device/precision.h"
#include "ops/conv/backward.h"
#include "ops/conv/conv.h"
#include "ops/conv/onednn.h"
#include "ops/conv/winograd/kernels.h"

namespace cytra {
namespace {
namespace winograd_tests {

using device::ConvAlgorithm;
using Numbers = std::vector<int64_t>;

class Winograd : public testing::Test {
 protected:
  void SetUp() override {
    if (ops::cpu::winograd_kernels() == nullptr) GTEST_SKIP() << "a processor without AVX2";
    device::set_conv_algorithm(ConvAlgorithm::winograd);
  }
  void TearDown() override {
    device::set_conv_algorithm(ConvAlgorithm::automatic);
    at::set_num_threads(threads_);
  }
  const int threads_ = at::get_num_threads();
};

struct Case {
  Numbers image, weight, padding;
};

struct Results {
  at::Tensor output, of_input, of_weight, of_bias;
};

Results compute(const Case& c,
                const at::Tensor& image,
                const at::Tensor& weight,
                const at::Tensor& bias,
                const at::Tensor& grad) {
  const Numbers ones(c.padding.size(), 1), none(c.padding.size(), 0);
  const ops::ConvOptions options{ones, c.padding, ones, false, none, 1};
  EXPECT_TRUE(ops::cpu::uses_winograd(image, weight, options));
  Results results;
  results.output = ops::cpu::convolution(image, weight, bias, options);
  std::tie(results.of_input, results.of_weight, results.of_bias) =
      ops::cpu::conv_gradients(grad.defined() ? grad : at::ones_like(results.output),
                               image,
                               weight,
                               options,
                               {true, true, true});
  return results;
}

/// The largest error, of the exact values' root mean square.
double error_of(const at::Tensor& value, const at::Tensor& exact) {
  EXPECT_EQ(value.sizes(), exact.sizes());
  return ((value.to(at::kDouble) - exact).abs().max() / exact.square().mean().sqrt())
      .item<double>();
}

void check(const Case& c, at::MemoryFormat format, double limit) {
  const std::string name = c10::str(at::IntArrayRef(c.image),
                                    " by ",
                                    at::IntArrayRef(c.weight),
                                    " padded by ",
                                    at::IntArrayRef(c.padding));
  const at::Tensor image = at::randn(c.image).contiguous(format), bias = at::randn(c.weight[0]);
  const at::Tensor weight =
      at::randn(c.weight).contiguous(format) / std::sqrt(static_cast<double>(9 * c.weight[1]));
  const Numbers ones(c.padding.size(), 1), none(c.padding.size(), 0);
  const auto double_of = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
  const at::Tensor exact_output = at::convolution(
      double_of(image), double_of(weight), double_of(bias), ones, c.padding, ones, false, none, 1);
  const at::Tensor grad = at::randn(exact_output.sizes()).contiguous(format);
  const auto [exact_input, exact_weight, exact_bias] = at::convolution_backward(double_of(grad),
                                                                                double_of(image),
                                                                                double_of(weight),
                                                                                c.weight[0],
                                                                                ones,
                                                                                c.padding,
                                                                                ones,
                                                                                false,
                                                                                none,
                                                                                1,
                                                                                {true, true, true});
  const Results ours = compute(c, image, weight, bias, grad);
  EXPECT_LT(error_of(ours.output, exact_output), limit) << name;
  EXPECT_LT(error_of(ours.of_input, exact_input), limit) << name;
  EXPECT_LT(error_of(ours.of_weight, exact_weight), limit) << name;
  EXPECT_LT(error_of(ours.of_bias, exact_bias), limit) << name;
  EXPECT_TRUE(ours.output.is_contiguous(format)) << name;
}

at::MemoryFormat last_of(const Case& c) {
  return c.padding.size() == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

const std::vector<Case> kCases{
    {{2, 32, 17, 23}, {48, 32, 3, 3}, {1, 1}},
    {{1, 64, 9, 6}, {32, 64, 3, 3}, {0, 0}},
    {{3, 16, 3, 4}, {16, 16, 3, 3}, {0, 1}},
    {{1, 16, 1, 1}, {80, 16, 3, 3}, {1, 1}},
    {{2, 128, 40, 41}, {128, 128, 3, 3}, {1, 1}},
    {{2, 16, 5, 7, 9}, {16, 16, 3, 3, 3}, {1, 1, 1}},
    {{1, 32, 4, 3, 3}, {64, 32, 3, 3, 3}, {0, 0, 1}},
    {{1, 48, 12, 9, 10}, {32, 48, 3, 3, 3}, {1, 1, 1}},
    {{2, 32, 3, 11, 10}, {16, 32, 1, 3, 3}, {0, 1, 1}},
};

TEST_F(Winograd, EqualsTheSumsInDouble) {
  at::manual_seed(1);
  for (const Case& c : kCases) {
    check(c, last_of(c), 5e-5);
    check(c, at::MemoryFormat::Contiguous, 5e-5);
  }
}

// CYTRA_FUZZ_CASES=10000 tries more.
TEST_F(Winograd, OfRandomShapesEqualsTheSumsInDouble) {
  const char* const more = std::getenv("CYTRA_FUZZ_CASES");
  const int cases = more != nullptr ? std::atoi(more) : 60;
  std::mt19937 random(7);
  const auto up_to = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  };
  at::manual_seed(2);
  for (int i = 0; i < cases; ++i) {
    const bool has_depth = up_to(2) == 1, has_flat_kernel = up_to(5) == 1;
    Case c{{up_to(3), 16 * up_to(5)}, {16 * up_to(5), 0}, {}};
    c.weight[1] = c.image[1];
    for (int side = has_depth ? 0 : 1; side < 3; ++side) {
      const int64_t kernel = side == 0 && has_flat_kernel ? 1 : 3,
                    padding = kernel == 1 ? 0 : up_to(2) - 1;
      c.image.push_back(up_to(has_depth ? 13 : 40) + (padding == 0 ? kernel - 1 : 0));
      c.weight.push_back(kernel);
      c.padding.push_back(padding);
    }
    at::set_num_threads(static_cast<int>(up_to(3)));
    check(c, up_to(3) > 1 ? last_of(c) : at::MemoryFormat::Contiguous, 2e-4);
  }
}

TEST_F(Winograd, IsTheSameForAnyNumberOfThreadsAndSamples) {
  at::manual_seed(3);
  for (const Case& c : kCases) {
    const at::Tensor image = at::randn(c.image).contiguous(last_of(c)),
                     weight = at::randn(c.weight), bias = at::randn(c.weight[0]);
    at::set_num_threads(1);
    const Results alone = compute(c, image, weight, bias, {});
    at::set_num_threads(3);
    const Results together = compute(c, image, weight, bias, {});
    EXPECT_TRUE(alone.output.equal(together.output));
    EXPECT_TRUE(alone.of_input.equal(together.of_input));
    EXPECT_TRUE(alone.of_weight.equal(together.of_weight));
    const Results of_last = compute(c, image.narrow(0, c.image[0] - 1, 1), weight, bias, {});
    EXPECT_TRUE(of_last.output.equal(alone.output.narrow(0, c.image[0] - 1, 1)));
  }
}

TEST_F(Winograd, ReadsAndWritesShortFloatsAndComputesInFloat32) {
  at::manual_seed(4);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    for (const Case& c : kCases) {
      const at::Tensor image = at::randn(c.image).contiguous(last_of(c)).to(type),
                       weight = at::randn(c.weight).to(type), bias = at::randn(c.weight[0]);
      const auto float_of = [](const at::Tensor& tensor) { return tensor.to(at::kFloat); };
      Results exact = compute(c, float_of(image), float_of(weight), bias, {});
      const at::Tensor grad = at::randn_like(exact.output).to(type);
      exact = compute(c, float_of(image), float_of(weight), bias, float_of(grad));
      for (const at::Tensor& given : {weight, float_of(weight)}) {
        const Results ours = compute(c, image, given, bias, grad);
        EXPECT_TRUE(ours.output.equal(exact.output.to(type)));
        EXPECT_TRUE(ours.of_input.equal(exact.of_input.to(type)));
        EXPECT_TRUE(ours.of_weight.equal(exact.of_weight.to(given.scalar_type())));
      }
    }
  }
}

TEST_F(Winograd, UnderAutocastTakesTheParametersAsTheyAre) {
  const at::Tensor weight = at::randn({16, 16, 3, 3}).requires_grad_(),
                   bias = at::randn(16).requires_grad_();
  const at::Tensor image = at::randn({1, 16, 9, 9}).contiguous(at::MemoryFormat::ChannelsLast);
  const Numbers ones{1, 1}, none{0, 0};
  const ops::ConvOptions options{ones, ones, ones, false, none, 1};
  EXPECT_THROW(ops::convolution(image.to(at::kBFloat16), weight, bias, options), c10::Error);
  EXPECT_THROW(ops::convolution(image, weight, bias.to(at::kDouble), options), c10::Error);
  const device::Autocast autocast({true, at::kBFloat16, at::kFloat}, at::kCPU);
  const at::Tensor output = ops::convolution(image, weight, bias, options);
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(output.equal(
      ops::cpu::winograd(image.to(at::kBFloat16), weight.detach(), bias.detach(), options)));
  // The backward pass may find another algorithm chosen.
  device::set_conv_algorithm(ConvAlgorithm::direct);
  output.sum().backward();
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
}

TEST_F(Winograd, SpreadsWhatIsNotFiniteNoFurtherThanATile) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Case c{{1, 16, 32, 32}, {16, 16, 3, 3}, {1, 1}};
    const at::Tensor weight = at::randn(c.weight), bias = at::randn(16);
    at::Tensor image = at::randn(c.image).contiguous(last_of(c));
    const at::Tensor before = compute(c, image, weight, bias, {}).output;
    image.index_put_({at::tensor(0), at::tensor(5), at::tensor(13), at::tensor(14)}, value);
    const at::Tensor after = compute(c, image, weight, bias, {}).output;
    EXPECT_FALSE(after.slice(2, 12, 16).slice(3, 12, 16).isfinite().any().item<bool>());
    at::Tensor is_equal = after.eq(before).all(1).squeeze(0);
    is_equal.slice(0, 12, 16).slice(1, 12, 16).fill_(true);
    EXPECT_TRUE(is_equal.all().item<bool>());
  }
}

TEST_F(Winograd, IsChosenWhereItIsFaster) {
  const auto is_chosen = [](const Case& c, at::ScalarType type = at::kFloat) {
    const Numbers ones(c.padding.size(), 1), none(c.padding.size(), 0);
    return ops::cpu::uses_winograd(
        at::empty(c.image, at::device(at::kCPU).dtype(type)).contiguous(last_of(c)),
        at::empty(c.weight, type),
        {ones, c.padding, ones, false, none, 1});
  };
  const Case large{{1, 64, 128, 128}, {64, 64, 3, 3}, {1, 1}},
      small{{1, 512, 4, 4, 4}, {512, 512, 3, 3, 3}, {1, 1, 1}},
      odd{{1, 20, 128, 128}, {20, 20, 3, 3}, {1, 1}};
  device::set_conv_algorithm(ConvAlgorithm::automatic);
  EXPECT_TRUE(is_chosen(large));
  EXPECT_FALSE(is_chosen(small));
  EXPECT_FALSE(is_chosen(odd));
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf})
    EXPECT_EQ(is_chosen(large, type), !device::has_matrix_units(type));
  device::set_conv_algorithm(ConvAlgorithm::winograd);
  EXPECT_TRUE(is_chosen(small));
  EXPECT_FALSE(is_chosen(odd));
  for (const at::ScalarType type : {at::kDouble, at::kFloat8_e5m2})
    EXPECT_FALSE(is_chosen(large, type));
  device::set_conv_algorithm(ConvAlgorithm::direct);
  EXPECT_FALSE(is_chosen(large));
}

}  // namespace winograd_tests
}  // namespace
}  // namespace cytra
