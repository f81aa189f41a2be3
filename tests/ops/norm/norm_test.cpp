#include "ops/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

#include "base/error.h"

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

using ops::Activation;
using Function = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;

/// One of the norms, and what it is of ATen's operations.
struct Norm {
  std::string name;
  std::function<Function(const Activation&)> ours;
  Function aten;
};

const int64_t kGroups = 2;

at::Tensor ramp(int64_t channels, double begin) {
  return at::linspace(begin, begin + 2, channels, at::kDouble);
}

const std::vector<Norm>& norms() {
  static const std::vector<Norm> all{
      {"instance",
       [](const Activation& activation) -> Function {
         return [=](const auto& x, const auto& w, const auto& b) {
           return ops::instance_norm(x, w, b, kEpsilon, activation);
         };
       },
       [](const auto& x, const auto& w, const auto& b) {
         return at::instance_norm(x, w, b, {}, {}, true, 0.1, kEpsilon, false);
       }},
      {"group",
       [](const Activation& activation) -> Function {
         return [=](const auto& x, const auto& w, const auto& b) {
           return ops::group_norm(
               x, x.size(1) % kGroups == 0 ? kGroups : 1, w, b, kEpsilon, activation);
         };
       },
       [](const auto& x, const auto& w, const auto& b) {
         return at::group_norm(x, x.size(1) % kGroups == 0 ? kGroups : 1, w, b, kEpsilon);
       }},
      {"batch",
       [](const Activation& activation) -> Function {
         return [=](const auto& x, const auto& w, const auto& b) {
           return ops::batch_norm(x, w, b, {}, true, kEpsilon, activation);
         };
       },
       [](const auto& x, const auto& w, const auto& b) {
         return at::batch_norm(x, w, b, {}, {}, true, 0.1, kEpsilon, false);
       }},
      {"batch, evaluated",
       [](const Activation& activation) -> Function {
         return [=](const auto& x, const auto& w, const auto& b) {
           const int64_t channels = x.size(1);
           const ops::RunningStatistics running{ramp(channels, 2), ramp(channels, 1)};
           return ops::batch_norm(x, w, b, running, false, kEpsilon, activation);
         };
       },
       [](const auto& x, const auto& w, const auto& b) {
         const int64_t channels = x.size(1);
         return at::batch_norm(
             x, w, b, ramp(channels, 2), ramp(channels, 1), false, 0.1, kEpsilon, false);
       }}};
  return all;
}

const Norm& instance() {
  return norms().front();
}

Results fused(const Norm& norm, const Inputs& inputs, const Activation& activation) {
  return differentiate(inputs, at::kFloat, norm.ours(activation));
}

/// In double, of the same inputs.
Results reference(const Norm& norm, const Inputs& inputs, const Activation& activation) {
  return differentiate(inputs, at::kDouble, [&](const auto& x, const auto& w, const auto& b) {
    return ops::activate(norm.aten(x, w, b), activation);
  });
}

Activation leaky(double slope) {
  return {Activation::kLeakyRelu, slope};
}

const std::vector<Activation> kFused{leaky(0.01), {Activation::kRelu}, {}},
    kOthers{
        leaky(1.5), leaky(-0.2), {Activation::kGelu}, {Activation::kSilu}, {Activation::kElu, 1}};

/// The largest difference, relative to the largest value where that is above 1.
double difference(const at::Tensor& a, const at::Tensor& b) {
  const double scale = std::max(1.0, b.abs().max().item<double>());
  return (a.to(at::kDouble) - b).abs().max().item<double>() / scale;
}

void expect_close(const Results& actual, const Results& expected) {
  EXPECT_LT(difference(actual.y, expected.y), 1e-5);
  EXPECT_LT(difference(actual.x_grad, expected.x_grad), 1e-4);
  // Sums of n numbers of about 1, which may cancel.
  const int64_t n = actual.y.numel() / actual.bias_grad.numel();
  const double tolerance = 5e-5 + 1e-6 * std::sqrt(static_cast<double>(n));
  EXPECT_LT(difference(actual.weight_grad, expected.weight_grad), tolerance);
  EXPECT_LT(difference(actual.bias_grad, expected.bias_grad), tolerance);
}

bool is_same(const Results& a, const Results& b) {
  return a.y.equal(b.y) && a.x_grad.equal(b.x_grad) && a.weight_grad.equal(b.weight_grad) &&
         a.bias_grad.equal(b.bias_grad);
}

class NormShapes : public testing::TestWithParam<std::vector<int64_t>> {};

void expect_reference(const std::vector<int64_t>& shape,
                      const std::vector<Activation>& activations) {
  for (const bool is_channels_last : {false, true}) {
    const Inputs inputs = make_inputs(shape, is_channels_last);
    for (const Norm& norm : norms()) {
      for (const Activation& activation : activations) {
        SCOPED_TRACE(testing::Message()
                     << norm.name << ", activation " << activation.kind << " slope "
                     << activation.slope << " last " << is_channels_last);
        const Results actual = fused(norm, inputs, activation);
        EXPECT_EQ(actual.y.strides(), inputs.x.strides());
        EXPECT_EQ(actual.x_grad.strides(), inputs.x.strides());
        expect_close(actual, reference(norm, inputs, activation));
      }
    }
  }
}

TEST_P(NormShapes, ValuesAndGradientsEqualTheReferenceInDouble) {
  expect_reference(GetParam(), kFused);
}

TEST(Norms, TakeOtherActivations) {
  expect_reference({2, 6, 9, 11}, kOthers);
}

TEST_P(NormShapes, DoesNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const bool is_channels_last : {false, true}) {
    const Inputs inputs = make_inputs(GetParam(), is_channels_last);
    for (const Norm& norm : norms()) {
      at::set_num_threads(1);
      const Results one = fused(norm, inputs, leaky(0.01));
      for (const int n : {2, 3}) {
        at::set_num_threads(n);
        EXPECT_TRUE(is_same(one, fused(norm, inputs, leaky(0.01))))
            << norm.name << ", " << n << " threads, last " << is_channels_last;
      }
    }
  }
  at::set_num_threads(threads);
}

/// The output and the gradient of short floats are those of the same numbers in double, but for the
/// rounding of what is written.
TEST_P(NormShapes, TakesShortFloats) {
  struct Case {
    at::ScalarType type;
    double written, summed;  // differences allowed
  };
  for (const Case& entry : {Case{at::kBFloat16, 5e-3, 1e-2}, Case{at::kHalf, 7e-4, 2e-3}}) {
    for (const bool is_channels_last : {false, true}) {
      Inputs inputs = make_inputs(GetParam(), is_channels_last);
      inputs.x = inputs.x.to(entry.type);
      const at::Tensor grad = inputs.grad.to(entry.type);
      for (const Norm& norm : norms()) {
        // Rounding decides on which side of the activation's kink such a number is.
        const at::Tensor is_tiny = reference(norm, inputs, {}).y.abs().lt(1e-6);
        inputs.grad = grad.masked_fill(is_tiny, 0);
        for (const Activation& activation : kFused) {
          SCOPED_TRACE(testing::Message() << entry.type << ' ' << norm.name << " slope "
                                          << activation.slope << " last " << is_channels_last);
          const at::Tensor x = inputs.x.clone().requires_grad_(true),
                           weight = inputs.weight.clone().requires_grad_(true),
                           bias = inputs.bias.clone().requires_grad_(true);
          const at::Tensor y = norm.ours(activation)(x, weight, bias);
          ASSERT_EQ(y.scalar_type(), entry.type);
          EXPECT_EQ(y.strides(), inputs.x.strides());
          y.backward(inputs.grad);
          ASSERT_EQ(weight.grad().scalar_type(), at::kFloat);
          const Results expected = reference(norm, inputs, activation);
          EXPECT_LT(difference(y, expected.y), entry.written);
          EXPECT_LT(difference(x.grad(), expected.x_grad), entry.summed);
          EXPECT_LT(difference(weight.grad(), expected.weight_grad), entry.summed);
          EXPECT_LT(difference(bias.grad(), expected.bias_grad), entry.summed);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Norm,
                         NormShapes,
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

TEST(Norms, ConstantPlanesGiveTheBias) {
  for (const bool is_channels_last : {false, true}) {
    Inputs inputs = make_inputs({2, 16, 150, 151}, is_channels_last);
    inputs.x.copy_(at::tensor(12345.678F));
    const Results actual = fused(instance(), inputs, leaky(0.01));
    const at::Tensor expected = at::leaky_relu(inputs.bias, 0.01).view({1, -1, 1, 1});
    EXPECT_LT(difference(actual.y, expected.expand_as(actual.y).to(at::kDouble)), 1e-5);
    EXPECT_TRUE(actual.x_grad.isfinite().all().item<bool>());
  }
}

TEST(Norms, ALargeOffsetCostsNoDigits) {
  for (const bool is_channels_last : {false, true}) {
    Inputs inputs = make_inputs({1, 16, 150, 151}, is_channels_last);
    inputs.x += 1e5;
    expect_close(fused(instance(), inputs, leaky(0.01)),
                 reference(instance(), inputs, leaky(0.01)));
  }
}

TEST(Norms, AnOutlierAtTheStartCostsNoDigits) {
  for (const bool is_channels_last : {false, true}) {
    Inputs inputs = make_inputs({1, 8, 128, 128}, is_channels_last);
    inputs.x.flatten(2).slice(2, 0, 100) += 1e4;
    expect_close(fused(instance(), inputs, leaky(0.01)),
                 reference(instance(), inputs, leaky(0.01)));
  }
}

TEST(Norms, TinyAndZeroWeightsKeepTheirGradients) {
  Inputs inputs = make_inputs({2, 16, 33, 35}, false);
  inputs.weight[0] = 0;
  inputs.weight[1] = 1e-6;
  inputs.weight[2] = -2;
  expect_close(fused(instance(), inputs, leaky(0.01)), reference(instance(), inputs, leaky(0.01)));
}

TEST(Norms, GivesGradientsOnlyWhereTheyAreAskedFor) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, false);
  const Results expected = reference(instance(), inputs, leaky(0.01));
  for (int asked = 1; asked < 8; ++asked) {
    SCOPED_TRACE(asked);
    const at::Tensor x = inputs.x.clone().requires_grad_(asked & 1);
    const at::Tensor weight = inputs.weight.clone().requires_grad_(asked & 2);
    const at::Tensor bias = inputs.bias.clone().requires_grad_(asked & 4);
    ops::instance_norm(x, weight, bias, kEpsilon, leaky(0.01)).backward(inputs.grad);
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

TEST(Norms, TakesAnExpandedGradient) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, true);
  const at::Tensor x = inputs.x.clone().requires_grad_(true);
  const at::Tensor y = ops::instance_norm(x, inputs.weight, inputs.bias, kEpsilon, leaky(0.01));
  y.sum().backward();
  Inputs ones = inputs;
  ones.grad = at::ones_like(inputs.x);
  EXPECT_LT(difference(x.grad(), reference(instance(), ones, leaky(0.01)).x_grad), 1e-4);
}

TEST(Norms, KeepsNothingWithoutGradients) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, false);
  const at::Tensor weight = inputs.weight.clone().requires_grad_(true);
  const at::Tensor expected = reference(instance(), inputs, leaky(0.01)).y;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor y = ops::instance_norm(inputs.x, weight, inputs.bias, kEpsilon, leaky(0.01));
    EXPECT_FALSE(y.requires_grad());
    EXPECT_LT(difference(y, expected), 1e-5);
  }
  const c10::InferenceMode inference;
  const at::Tensor y = ops::instance_norm(inputs.x, weight, inputs.bias, kEpsilon, leaky(0.01));
  EXPECT_TRUE(y.is_inference());
  EXPECT_LT(difference(y, expected), 1e-5);
}

TEST(Norms, OnlyMemoryThatNothingElseHoldsBecomesTheOutput) {
  const at::NoGradGuard no_grad;
  for (const bool is_channels_last : {false, true}) {
    const Inputs inputs = make_inputs({2, 24, 20, 21}, is_channels_last);
    const auto normalized = [&](at::Tensor x) {
      return ops::instance_norm(std::move(x), inputs.weight, inputs.bias, kEpsilon, leaky(0.01));
    };
    at::Tensor own = inputs.x.clone();
    const at::Tensor expected = normalized(own);  // a copy of the handle: `own` still holds it
    EXPECT_TRUE(own.equal(inputs.x));
    at::Tensor viewed = inputs.x.clone();
    const at::Tensor view = viewed.detach();
    EXPECT_TRUE(normalized(std::move(viewed)).equal(expected));
    EXPECT_TRUE(view.equal(inputs.x));
    const void* const memory = own.const_data_ptr();
    const at::Tensor y = normalized(std::move(own));
    EXPECT_EQ(y.const_data_ptr(), memory);
    EXPECT_TRUE(y.equal(expected));
  }
}

TEST(Norms, TakesOtherTypesAndStrides) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, false);
  const Results expected = reference(instance(), inputs, leaky(0.01));
  const Results actual =
      differentiate(inputs, at::kDouble, [](const auto& x, const auto& w, const auto& b) {
        return ops::instance_norm(x, w, b, kEpsilon, leaky(0.01));
      });
  EXPECT_LT(difference(actual.y, expected.y), 1e-12);
  EXPECT_LT(difference(actual.x_grad, expected.x_grad), 1e-12);

  const at::Tensor every_other = at::stack({inputs.x, inputs.x}, -1).select(-1, 0);
  ASSERT_FALSE(every_other.is_contiguous());
  const at::Tensor y =
      ops::instance_norm(every_other, inputs.weight, inputs.bias, kEpsilon, leaky(0.01));
  EXPECT_LT(difference(y, expected.y), 1e-5);
  // bfloat16 has 8 bits.
  const at::Tensor half = ops::instance_norm(
      inputs.x.to(at::kBFloat16), inputs.weight, inputs.bias, kEpsilon, leaky(0.01));
  EXPECT_LT(difference(half, expected.y), 3e-2);
}

TEST(Norms, ATraceHasOperationsOfATen) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, false);
  const auto traced = torch::jit::tracer::trace(
      {inputs.x},
      [&](torch::jit::Stack stack) -> torch::jit::Stack {
        return {ops::instance_norm(
            stack.at(0).toTensor(), inputs.weight, inputs.bias, kEpsilon, leaky(0.01))};
      },
      [](const at::Tensor&) { return std::string(); });
  const std::string graph = traced.first->graph->toString();
  EXPECT_NE(graph.find("aten::instance_norm"), std::string::npos) << graph;
  EXPECT_NE(graph.find("aten::leaky_relu"), std::string::npos) << graph;
}

TEST(Norms, RefusesASecondDerivative) {
  const Inputs inputs = make_inputs({1, 4, 5, 6}, false);
  const at::Tensor x = inputs.x.clone().requires_grad_(true);
  const at::Tensor y = ops::instance_norm(x, inputs.weight, inputs.bias, kEpsilon, leaky(0.01));
  EXPECT_THROW(y.backward(inputs.grad, std::nullopt, true), std::logic_error);
}

TEST(Norms, RefusesAWeightThatDoesNotFit) {
  const Inputs inputs = make_inputs({1, 4, 5, 6}, false);
  EXPECT_THROW(ops::instance_norm(inputs.x, at::ones({3}), inputs.bias, kEpsilon, leaky(0.01)),
               c10::Error);
}

TEST(Norms, TakesNoAffineMap) {
  for (const bool is_channels_last : {false, true}) {
    const Inputs inputs = make_inputs({2, 8, 20, 21}, is_channels_last);
    for (const Norm& norm : norms()) {
      SCOPED_TRACE(norm.name);
      const at::Tensor x = inputs.x.clone().requires_grad_(true);
      const at::Tensor wide = inputs.x.detach().to(at::kDouble).requires_grad_(true);
      const at::Tensor y = norm.ours(leaky(0.01))(x, {}, {});
      const at::Tensor expected = at::leaky_relu(norm.aten(wide, {}, {}), 0.01);
      EXPECT_LT(difference(y.detach(), expected.detach()), 1e-5);
      y.backward(inputs.grad);
      expected.backward(inputs.grad.to(at::kDouble));
      EXPECT_LT(difference(x.grad(), wide.grad()), 1e-4);
    }
  }
}

TEST(Norms, BatchNormRemembersWhatTorchRemembers) {
  for (const bool is_channels_last : {false, true}) {
    const Inputs inputs = make_inputs({3, 6, 11, 13}, is_channels_last);
    ops::RunningStatistics ours{at::zeros(6), at::ones(6), 0.3};
    const at::Tensor mean = at::zeros(6, at::kDouble), variance = at::ones(6, at::kDouble);
    for (const bool needs_grad : {true, false}) {
      const at::AutoGradMode mode(needs_grad);
      const at::Tensor weight = inputs.weight.clone().requires_grad_(true);
      ops::batch_norm(inputs.x, weight, inputs.bias, ours, true, kEpsilon);
      at::batch_norm(inputs.x.to(at::kDouble), {}, {}, mean, variance, true, 0.3, kEpsilon, false);
    }
    EXPECT_LT(difference(ours.mean, mean), 1e-6);
    EXPECT_LT(difference(ours.variance, variance), 1e-6);
  }
}

TEST(Norms, ShortFloatsAreReadExactlyAndRoundedToTheNearest) {
  // By fixed statistics 0 and 1 - epsilon the norm is a product: of all numbers that there are.
  const at::TensorOptions wide(at::kDouble);
  const ops::RunningStatistics running{at::zeros(1, wide), at::full({1}, 1 - kEpsilon, wide)};
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor x = at::arange(-32768, 32768).to(at::kShort).view(type).view({1, 1, 256, 256});
    for (const float factor : {1.F, 1 / 3.F, 77.7F}) {
      const at::Tensor weight = at::full({1}, factor), zero = at::zeros(1);
      const at::Tensor y = ops::batch_norm(x, weight, zero, running, false, kEpsilon);
      const at::Tensor expected = (x.to(at::kFloat) * factor).to(type);
      EXPECT_TRUE(at::allclose(y, expected, 0, 0, /*equal_nan=*/true)) << type << ' ' << factor;
    }
  }
}

TEST(Norms, TakesWeightsOfTheInputsType) {
  const Inputs inputs = make_inputs({2, 16, 20, 21}, true);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor x = inputs.x.to(type), weight = inputs.weight.to(type).requires_grad_(true),
                     bias = inputs.bias.to(type);
    const at::Tensor y = ops::instance_norm(x, weight, bias, kEpsilon, leaky(0.01));
    EXPECT_TRUE(y.equal(
        ops::instance_norm(x, weight.to(at::kFloat), bias.to(at::kFloat), kEpsilon, leaky(0.01))));
    y.backward(inputs.grad.to(type));
    EXPECT_EQ(weight.grad().scalar_type(), type);
  }
}

TEST(Norms, LayerNormIsTorchs) {
  const at::Tensor x = at::randn({2, 5, 12}), weight = at::rand(12), bias = at::randn(12);
  EXPECT_TRUE(at::allclose(ops::layer_norm(x, {12}, weight, bias, 1e-6, {Activation::kGelu}),
                           at::gelu(at::layer_norm(x, {12}, weight, bias, 1e-6))));
}

// What torch.nn.functional.{instance,group,batch}_norm refuse and allow.
TEST(Norms, AMeanOfOneValueIsRefusedAsTorchDoes) {
  const at::Tensor mean = at::zeros({4}), variance = at::ones({4});
  const auto batch = [&](at::IntArrayRef shape, bool training) {
    ops::batch_norm(at::randn(shape), {}, {}, {mean, variance, 0.1}, training, kEpsilon);
  };
  EXPECT_THROW(batch({1, 4, 1, 1}, true), DataError);
  EXPECT_THROW(batch({1, 4, 1, 1, 1}, true), DataError);
  EXPECT_TRUE(variance.isfinite().all().item<bool>());
  batch({1, 4, 1, 1}, false);
  batch({2, 4, 1, 1}, true);
  batch({1, 4, 1, 2}, true);
  EXPECT_THROW(ops::batch_norm(at::randn({1, 4, 1, 1}), {}, {}, {}, false, kEpsilon), DataError);
  EXPECT_THROW(ops::instance_norm(at::randn({2, 4, 1, 1}), {}, {}, kEpsilon), DataError);
  ops::instance_norm(at::randn({1, 4, 2, 1}), {}, {}, kEpsilon);
  EXPECT_THROW(ops::group_norm(at::randn({1, 4, 1, 1}), 4, {}, {}, kEpsilon), DataError);
  ops::group_norm(at::randn({2, 4, 1, 1}), 4, {}, {}, kEpsilon);
  ops::group_norm(at::randn({1, 4, 1, 1}), 2, {}, {}, kEpsilon);
}

}  // namespace
}  // namespace cytra
