#include "ops/instance_norm.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>

namespace cytra {
namespace {

constexpr double kEpsilon = 1e-5;

struct Inputs {
  at::Tensor x, weight, bias, grad;  // grad: of the output
};

at::MemoryFormat channels_last(int64_t dims) {
  return dims == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

Inputs make_inputs(const std::vector<int64_t>& shape, bool is_channels_last) {
  at::manual_seed(1);
  Inputs inputs{at::randn(shape) * 2 + 3,
                at::rand({shape[1]}) + 0.5,
                at::randn({shape[1]}),
                at::randn(shape)};
  if (is_channels_last) {
    const at::MemoryFormat format = channels_last(static_cast<int64_t>(shape.size()));
    inputs.x = inputs.x.contiguous(format);
  }
  return inputs;
}

struct Results {
  at::Tensor y, x_grad, weight_grad, bias_grad;
};

template <class F>
Results differentiate(const Inputs& inputs, at::ScalarType type, const F& f) {
  const auto leaf = [&](const at::Tensor& t) {
    return t.detach().to(type).clone().requires_grad_(true);
  };
  const at::Tensor x = leaf(inputs.x), weight = leaf(inputs.weight), bias = leaf(inputs.bias);
  const at::Tensor y = f(x, weight, bias);
  y.backward(inputs.grad.to(type));
  return {y.detach(), x.grad(), weight.grad(), bias.grad()};
}

Results fused(const Inputs& inputs, double slope) {
  return differentiate(inputs, at::kFloat, [&](const auto& x, const auto& w, const auto& b) {
    return ops::instance_norm_leaky_relu(x, w, b, kEpsilon, slope);
  });
}

Results reference(const Inputs& inputs, double slope) {
  return differentiate(inputs, at::kDouble, [&](const auto& x, const auto& w, const auto& b) {
    const at::Tensor y = at::instance_norm(x, w, b, {}, {}, true, 0.1, kEpsilon, false);
    return slope == 1 ? y : at::leaky_relu(y, slope);
  });
}

/// The largest difference, relative to the largest value where that is above 1.
double difference(const at::Tensor& a, const at::Tensor& b) {
  const double scale = std::max(1.0, b.abs().max().item<double>());
  return (a.to(at::kDouble) - b).abs().max().item<double>() / scale;
}

void expect_close(const Results& actual, const Results& expected) {
  EXPECT_LT(difference(actual.y, expected.y), 1e-5);
  EXPECT_LT(difference(actual.x_grad, expected.x_grad), 1e-4);
  EXPECT_LT(difference(actual.weight_grad, expected.weight_grad), 1e-4);
  EXPECT_LT(difference(actual.bias_grad, expected.bias_grad), 1e-4);
}

bool is_same(const Results& a, const Results& b) {
  return a.y.equal(b.y) && a.x_grad.equal(b.x_grad) && a.weight_grad.equal(b.weight_grad) &&
         a.bias_grad.equal(b.bias_grad);
}

class InstanceNormShapes : public testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(InstanceNormShapes, ValuesAndGradientsEqualTheReferenceInDouble) {
  for (const bool is_channels_last : {false, true}) {
    const Inputs inputs = make_inputs(GetParam(), is_channels_last);
    for (const double slope : {0.01, 0.0, 1.0, 1.5, -0.2}) {
      SCOPED_TRACE(testing::Message() << "slope " << slope << " last " << is_channels_last);
      const Results actual = fused(inputs, slope);
      EXPECT_EQ(actual.y.strides(), inputs.x.strides());
      EXPECT_EQ(actual.x_grad.strides(), inputs.x.strides());
      expect_close(actual, reference(inputs, slope));
    }
  }
}

TEST_P(InstanceNormShapes, DoesNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const bool is_channels_last : {false, true}) {
    const Inputs inputs = make_inputs(GetParam(), is_channels_last);
    at::set_num_threads(1);
    const Results one = fused(inputs, 0.01);
    for (const int n : {2, 5}) {
      at::set_num_threads(n);
      EXPECT_TRUE(is_same(one, fused(inputs, 0.01))) << n << " threads, last " << is_channels_last;
    }
  }
  at::set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(InstanceNorm,
                         InstanceNormShapes,
                         testing::Values(std::vector<int64_t>{2, 16, 24, 32},
                                         std::vector<int64_t>{4, 3, 17, 23},
                                         std::vector<int64_t>{3, 20, 9, 11},
                                         std::vector<int64_t>{1, 37, 31, 33},
                                         std::vector<int64_t>{1, 1, 301, 299},
                                         std::vector<int64_t>{2, 2, 257, 255},
                                         std::vector<int64_t>{1, 16, 200, 210},
                                         std::vector<int64_t>{1, 130, 40, 41},
                                         std::vector<int64_t>{9, 8, 65, 64},
                                         std::vector<int64_t>{2, 5, 7, 9, 11},
                                         std::vector<int64_t>{1, 16, 12, 31, 33},
                                         std::vector<int64_t>{2, 4, 1, 1, 3},
                                         std::vector<int64_t>{2, 512, 1, 2}));

TEST(InstanceNorm, OnePixelPlanesGiveTheBias) {
  const Inputs inputs = make_inputs({2, 24, 1, 1}, false);
  const Results actual = fused(inputs, 0.01);
  const at::Tensor expected = at::leaky_relu(inputs.bias, 0.01).view({1, -1, 1, 1});
  EXPECT_TRUE(at::allclose(actual.y, expected.expand_as(actual.y)));
  // Terms of 1 / sqrt(kEpsilon) cancel.
  EXPECT_LT(actual.x_grad.abs().max().item<float>(), 1e-3);
}

TEST(InstanceNorm, ConstantPlanesGiveTheBias) {
  for (const bool is_channels_last : {false, true}) {
    Inputs inputs = make_inputs({2, 16, 150, 151}, is_channels_last);
    inputs.x.copy_(at::tensor(12345.678F));
    const Results actual = fused(inputs, 0.01);
    const at::Tensor expected = at::leaky_relu(inputs.bias, 0.01).view({1, -1, 1, 1});
    EXPECT_LT(difference(actual.y, expected.expand_as(actual.y).to(at::kDouble)), 1e-5);
    EXPECT_TRUE(actual.x_grad.isfinite().all().item<bool>());
  }
}

TEST(InstanceNorm, ALargeOffsetCostsNoDigits) {
  for (const bool is_channels_last : {false, true}) {
    Inputs inputs = make_inputs({1, 16, 150, 151}, is_channels_last);
    inputs.x += 1e5;
    expect_close(fused(inputs, 0.01), reference(inputs, 0.01));
  }
}

TEST(InstanceNorm, AnOutlierAtTheStartCostsNoDigits) {
  for (const bool is_channels_last : {false, true}) {
    Inputs inputs = make_inputs({1, 8, 128, 128}, is_channels_last);
    inputs.x.flatten(2).slice(2, 0, 100) += 1e4;
    expect_close(fused(inputs, 0.01), reference(inputs, 0.01));
  }
}

TEST(InstanceNorm, TinyAndZeroWeightsKeepTheirGradients) {
  Inputs inputs = make_inputs({2, 16, 33, 35}, false);
  inputs.weight[0] = 0;
  inputs.weight[1] = 1e-6;
  inputs.weight[2] = -2;
  expect_close(fused(inputs, 0.01), reference(inputs, 0.01));
}

TEST(InstanceNorm, GivesGradientsOnlyWhereTheyAreAskedFor) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, false);
  const Results expected = reference(inputs, 0.01);
  for (int asked = 1; asked < 8; ++asked) {
    SCOPED_TRACE(asked);
    const at::Tensor x = inputs.x.clone().requires_grad_(asked & 1);
    const at::Tensor weight = inputs.weight.clone().requires_grad_(asked & 2);
    const at::Tensor bias = inputs.bias.clone().requires_grad_(asked & 4);
    ops::instance_norm_leaky_relu(x, weight, bias, kEpsilon, 0.01).backward(inputs.grad);
    const std::pair<at::Tensor, at::Tensor> pairs[] = {{x.grad(), expected.x_grad},
                                                       {weight.grad(), expected.weight_grad},
                                                       {bias.grad(), expected.bias_grad}};
    for (int i = 0; i < 3; ++i) {
      const bool is_asked = (asked >> i) & 1;
      ASSERT_EQ(pairs[i].first.defined(), is_asked);
      if (is_asked) {
        EXPECT_LT(difference(pairs[i].first, pairs[i].second), 1e-4);
      }
    }
  }
}

TEST(InstanceNorm, TakesAnExpandedGradient) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, true);
  const at::Tensor x = inputs.x.clone().requires_grad_(true);
  const at::Tensor y = ops::instance_norm_leaky_relu(x, inputs.weight, inputs.bias, kEpsilon, 0.01);
  y.sum().backward();
  Inputs ones = inputs;
  ones.grad = at::ones_like(inputs.x);
  EXPECT_LT(difference(x.grad(), reference(ones, 0.01).x_grad), 1e-4);
}

TEST(InstanceNorm, KeepsNothingWithoutGradients) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, false);
  const at::Tensor weight = inputs.weight.clone().requires_grad_(true);
  const at::Tensor expected = reference(inputs, 0.01).y;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor y =
        ops::instance_norm_leaky_relu(inputs.x, weight, inputs.bias, kEpsilon, 0.01);
    EXPECT_FALSE(y.requires_grad());
    EXPECT_LT(difference(y, expected), 1e-5);
  }
  const c10::InferenceMode inference;
  const at::Tensor y = ops::instance_norm_leaky_relu(inputs.x, weight, inputs.bias, kEpsilon, 0.01);
  EXPECT_TRUE(y.is_inference());
  EXPECT_LT(difference(y, expected), 1e-5);
}

TEST(InstanceNorm, TakesOtherTypesAndStrides) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, false);
  const Results expected = reference(inputs, 0.01);
  const Results actual =
      differentiate(inputs, at::kDouble, [](const auto& x, const auto& w, const auto& b) {
        return ops::instance_norm_leaky_relu(x, w, b, kEpsilon, 0.01);
      });
  EXPECT_LT(difference(actual.y, expected.y), 1e-12);
  EXPECT_LT(difference(actual.x_grad, expected.x_grad), 1e-12);

  const at::Tensor every_other = at::stack({inputs.x, inputs.x}, -1).select(-1, 0);
  ASSERT_FALSE(every_other.is_contiguous());
  const at::Tensor y =
      ops::instance_norm_leaky_relu(every_other, inputs.weight, inputs.bias, kEpsilon, 0.01);
  EXPECT_LT(difference(y, expected.y), 1e-5);
  // bfloat16 has 8 bits.
  const at::Tensor half = ops::instance_norm_leaky_relu(
      inputs.x.to(at::kBFloat16), inputs.weight, inputs.bias, kEpsilon, 0.01);
  EXPECT_LT(difference(half, expected.y), 3e-2);
}

TEST(InstanceNorm, ATraceHasOperationsOfATen) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, false);
  const auto traced = torch::jit::tracer::trace(
      {inputs.x},
      [&](torch::jit::Stack stack) -> torch::jit::Stack {
        return {ops::instance_norm_leaky_relu(
            stack.at(0).toTensor(), inputs.weight, inputs.bias, kEpsilon, 0.01)};
      },
      [](const at::Tensor&) { return std::string(); });
  const std::string graph = traced.first->graph->toString();
  EXPECT_NE(graph.find("aten::instance_norm"), std::string::npos) << graph;
  EXPECT_NE(graph.find("aten::leaky_relu"), std::string::npos) << graph;
}

TEST(InstanceNorm, RefusesASecondDerivative) {
  const Inputs inputs = make_inputs({1, 4, 5, 6}, false);
  const at::Tensor x = inputs.x.clone().requires_grad_(true);
  const at::Tensor y = ops::instance_norm_leaky_relu(x, inputs.weight, inputs.bias, kEpsilon, 0.01);
  EXPECT_THROW(y.backward(inputs.grad, std::nullopt, true), std::logic_error);
}

TEST(InstanceNorm, RefusesAWeightThatDoesNotFit) {
  const Inputs inputs = make_inputs({1, 4, 5, 6}, false);
  EXPECT_THROW(ops::instance_norm_leaky_relu(inputs.x, at::ones({3}), inputs.bias, kEpsilon, 0.01),
               c10::Error);
}

}  // namespace
}  // namespace cytra
