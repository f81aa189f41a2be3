
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "ops/conv/backward.h"
#include "ops/conv/kernels.h"

namespace cytra {
namespace {

using Numbers = std::vector<int64_t>;

struct ConvCase {
  Numbers image, weight;  // (N,C,[D,]H,W), (K,C,[d,]h,w); transposed: (C,K,[d,]h,w)
  Numbers stride, padding;
  bool transposed = false;
};

struct ConvTensors {
  ConvTensors(const ConvCase& c, at::ScalarType type) : form(c) {
    const std::size_t dims = c.stride.size();
    const auto format =
        dims == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
    const auto random = [&](const Numbers& shape) {
      return at::randn(shape).to(type).contiguous(format);
    };
    image = random(c.image);
    weight = random(c.weight);
    one = Numbers(dims, 1);
    none = Numbers(dims, 0);
    grad =
        random(at::convolution(image, weight, {}, c.stride, c.padding, one, c.transposed, none, 1)
                   .sizes()
                   .vec());
  }
  /// Of input, weight and bias.
  std::vector<at::Tensor> gradients(at::ScalarType type) const {
    const auto [a, b, c] =
        ops::cpu::conv_gradients(grad.to(type),
                                 image.to(type),
                                 weight.to(type),
                                 {form.stride, form.padding, one, form.transposed, none, 1},
                                 {true, true, true});
    return {a, b, c};
  }
  /// By our kernel, whether or not it is the fastest.
  at::Tensor ours() const {
    const bool swaps = form.transposed;
    return ops::cpu::conv_weight_grad(swaps ? grad : image,
                                      swaps ? image : grad,
                                      {weight.sizes().slice(2), form.stride, form.padding},
                                      weight.suggest_memory_format());
  }
  ConvCase form;
  Numbers one, none;
  at::Tensor image, weight, grad;
};

double error_of(const at::Tensor& value, const at::Tensor& exact) {
  return ((value.to(at::kDouble) - exact).abs().max() / exact.abs().max()).item<double>();
}

/// Sides and channels that leave parts of tiles, blocks and chunks; places outside of the image.
const std::vector<ConvCase> kConvCases{
    {{2, 32, 16, 16}, {32, 32, 3, 3}, {1, 1}, {1, 1}},
    {{1, 37, 35, 71}, {41, 37, 3, 3}, {1, 1}, {1, 1}},
    {{2, 5, 19, 37}, {17, 5, 3, 3}, {2, 2}, {1, 1}},
    {{1, 70, 9, 11}, {140, 70, 5, 4}, {2, 3}, {2, 0}},
    {{3, 33, 7, 5}, {33, 33, 1, 1}, {1, 1}, {0, 0}},
    {{1, 600, 5, 6}, {34, 600, 3, 3}, {1, 1}, {1, 1}},
    {{2, 32, 6, 18, 20}, {40, 32, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
    {{1, 35, 7, 9, 33}, {64, 35, 3, 3, 3}, {2, 2, 2}, {1, 1, 1}},
    {{1, 48, 3, 9, 12}, {33, 48, 1, 3, 3}, {1, 2, 2}, {0, 1, 1}},
    {{2, 64, 9, 7}, {64, 48, 2, 2}, {2, 2}, {0, 0}, true},
    {{1, 40, 3, 4, 5}, {40, 32, 1, 2, 2}, {1, 2, 2}, {0, 0, 0}, true},
};

TEST(ConvWeightGrad, EqualsSumsInDouble) {
  at::manual_seed(1);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    if (ops::cpu::conv_kernels(type == at::kBFloat16) == nullptr) continue;
    for (std::size_t i = 0; i < kConvCases.size(); ++i) {
      const ConvTensors tensors(kConvCases[i], type);
      const at::Tensor exact = tensors.gradients(at::kDouble)[1], ours = tensors.ours();
      EXPECT_EQ(ours.scalar_type(), type);
      EXPECT_LT(error_of(ours, exact), type == at::kFloat ? 1e-6 : 4e-3) << i << ' ' << type;
    }
  }
}

TEST(ConvWeightGrad, SumsOfManyPixelsKeepTheirDigits) {
  if (ops::cpu::conv_kernels(false) == nullptr) GTEST_SKIP() << "no kernel for this processor";
  at::manual_seed(2);
  const ConvTensors tensors({{2, 32, 256, 256}, {32, 32, 3, 3}, {1, 1}, {1, 1}}, at::kFloat);
  EXPECT_LT(error_of(tensors.ours(), tensors.gradients(at::kDouble)[1]), 3e-6);
}

/// All cases, with ours where it is faster.
TEST(ConvWeightGrad, IsAmongTheGradientsOfAConvolution) {
  at::manual_seed(3);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (std::size_t i = 0; i < kConvCases.size(); ++i) {
      const ConvTensors tensors(kConvCases[i], type);
      const auto exact = tensors.gradients(at::kDouble), all = tensors.gradients(type);
      for (std::size_t g = 0; g < exact.size(); ++g)
        EXPECT_LT(error_of(all[g], exact[g]), type == at::kFloat ? 1e-5 : 2e-2)
            << i << ' ' << g << ' ' << type;
    }
  }
  if (ops::cpu::conv_kernels(false) == nullptr) GTEST_SKIP() << "no kernel for this processor";
  const ConvTensors tensors({{2, 32, 96, 96}, {32, 32, 5, 5}, {1, 1}, {2, 2}}, at::kFloat);
  EXPECT_TRUE(tensors.gradients(at::kFloat)[1].equal(tensors.ours()));
}

/// Layers of few weights, whose gradient each thread computes a part of: of the samples, or of the
/// rows where there are fewer samples.
TEST(ConvWeightGrad, OfNarrowLayersInPartsEqualsSumsInDouble) {
  struct Narrow {
    Numbers image, weight, stride, padding, dilation;
    int64_t groups = 1;
    bool transposed = false;
  };
  const std::vector<Narrow> cases{
      {{4, 1, 20, 19}, {16, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {{1, 1, 20, 19}, {16, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {{1, 3, 21, 18}, {8, 3, 5, 3}, {2, 2}, {2, 1}, {1, 1}},
      {{1, 2, 21, 18}, {8, 2, 3, 3}, {2, 3}, {3, 2}, {3, 2}},
      {{2, 16, 9, 8}, {1, 16, 1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {{5, 12, 9, 8}, {12, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 12},
      {{1, 12, 9, 8}, {12, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 3},
      {{1, 2, 6, 7, 9}, {8, 2, 3, 3, 3}, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {{2, 16, 9, 7}, {16, 8, 2, 2}, {2, 2}, {0, 0}, {1, 1}, 1, true},
      {{1, 16, 3, 4, 5}, {16, 4, 1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {1, 1, 1}, 1, true},
      {{1, 3, 2, 9}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}},  // fewer rows than threads
  };
  at::manual_seed(5);
  const int before = at::get_num_threads();
  for (const bool is_last : {false, true}) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Narrow& c = cases[i];
      const Numbers none(c.stride.size(), 0);
      const auto format = !is_last              ? at::MemoryFormat::Contiguous
                          : c.image.size() == 4 ? at::MemoryFormat::ChannelsLast
                                                : at::MemoryFormat::ChannelsLast3d;
      const at::Tensor image = at::randn(c.image).contiguous(format),
                       weight = at::randn(c.weight).contiguous(format);
      const auto gradient = [&](int threads, at::ScalarType type) {
        at::set_num_threads(threads);
        const at::Tensor x = image.detach().to(type).requires_grad_(),
                         w = weight.detach().to(type).requires_grad_();
        const at::Tensor y = ops::convolution(
            x, w, {}, {c.stride, c.padding, c.dilation, c.transposed, none, c.groups});
        (y * at::linspace(-1, 1, y.numel(), y.options()).cos().view_as(y)).sum().backward();
        return w.grad();
      };
      const at::Tensor exact = gradient(1, at::kDouble);
      for (const int threads : {2, 5}) {
        const at::Tensor parts = gradient(threads, at::kFloat);
        EXPECT_LT(error_of(parts, exact), 1e-5) << i << ' ' << threads << ' ' << is_last;
        EXPECT_TRUE(parts.equal(gradient(threads, at::kFloat))) << i << ' ' << threads;
        EXPECT_LT(error_of(gradient(threads, at::kBFloat16), exact), 3e-2) << i << ' ' << threads;
      }
      EXPECT_EQ(at::get_num_threads(), 5);  // the loop's own number of threads ends with it
    }
  }
  at::set_num_threads(before);
}

/// torch 2.11 alone ends with a segmentation fault.
TEST(ConvWeightGrad, OfOneChannelOfWhichPixelsAreSkipped) {
  at::manual_seed(6);
  const at::Tensor image =
      at::randn({4, 1, 128, 128}).as_strided({4, 1, 128, 128}, {128 * 128, 1, 128, 1});
  const auto gradient = [&](at::ScalarType type) {
    const at::Tensor w = at::arange(16, at::kDouble).view({16, 1, 1, 1}).to(type).requires_grad_();
    const Numbers stride{2, 3}, none{0, 0}, one{1, 1};
    const at::Tensor y =
        ops::convolution(image.to(type), w, {}, {stride, none, one, false, none, 1});
    y.backward(at::linspace(-1, 1, y.numel(), y.options()).cos().view_as(y));
    return w.grad();
  };
  EXPECT_LT(error_of(gradient(at::kFloat), gradient(at::kDouble)), 1e-5);
}

/// torch 2.11 alone reads memory that nothing was written to (bfloat16, processors with
/// AVX512_BF16), or computes another sum (float32, AVX512).
TEST(ConvWeightGrad, OfImagesThatAreShortBesideTheKernelIsOfTheirPixelsAlone) {
  const std::vector<ConvCase> cases{
      {{64, 4, 2, 4, 4}, {4, 4, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
      {{32, 24, 2, 2, 2}, {24, 24, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
      {{32, 4, 4, 4, 1}, {4, 4, 3, 3, 3}, {2, 2, 2}, {1, 1, 1}},
      {{4, 4, 8, 1, 4}, {4, 4, 5, 5, 5}, {1, 1, 1}, {2, 2, 2}},
      {{4, 12, 7, 8, 8}, {24, 12, 7, 3, 3}, {2, 1, 1}, {3, 1, 1}},
      {{4, 4, 2, 2}, {4, 4, 3, 3}, {1, 1}, {1, 1}},
      {{4, 4, 5, 3}, {4, 4, 2, 2}, {1, 4}, {1, 1}},
      {{2, 8, 2, 7, 2}, {32, 8, 1, 5, 1}, {1, 2, 3}, {0, 2, 0}},
      {{4, 4, 1, 1, 1}, {4, 4, 2, 2, 2}, {2, 2, 2}, {0, 0, 0}, true},
      {{4, 4, 2, 2, 1}, {4, 4, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, true},
      {{4, 16, 2, 3, 1}, {16, 4, 1, 1, 1}, {2, 2, 2}, {0, 0, 0}, true},
  };
  at::manual_seed(8);
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const ConvTensors tensors(cases[i], type);
      const auto exact = tensors.gradients(at::kDouble);
      for (const double earlier : {std::nan(""), 3e38}) {
        for (int64_t size = 256; size <= (1 << 18); size *= 4)
          at::full({size}, earlier, at::kBFloat16);
        const auto all = tensors.gradients(type);
        for (std::size_t g = 0; g < exact.size(); ++g)
          EXPECT_LT(error_of(all[g], exact[g]), type == at::kFloat ? 1e-5 : 2e-2)
              << i << ' ' << g << ' ' << earlier << ' ' << type;
      }
    }
  }
}

/// Gradients in a layout of their own, of a part of a tensor, of an odd size.
TEST(ConvWeightGrad, OfEveryWayToCallIsWhatItIsInDouble) {
  at::manual_seed(10);
  const auto last = at::MemoryFormat::ChannelsLast;
  const auto run = [&](at::ScalarType type, int way) {
    const auto leaf = [&](const Numbers& shape, at::MemoryFormat format) {
      at::manual_seed(way);
      return at::randn(shape).to(at::kBFloat16).to(type).contiguous(format).requires_grad_();
    };
    const bool is_plain = way % 2 == 0;
    const Numbers none{0, 0}, ones{1, 1}, twos{2, 2};
    at::Tensor x, w, y;
    switch (way) {
      case 0:
      case 1:
        x = leaf({4, 8, 1, 1}, is_plain ? at::MemoryFormat::Contiguous : last);
        w = leaf({8, 4, 2, 2}, at::MemoryFormat::Contiguous);
        y = ops::convolution(x, w, {}, {twos, none, ones, true, ones, 1});
        break;
      case 2:
      case 3:
        x = leaf({2, 40, 12, 12}, is_plain ? at::MemoryFormat::Contiguous : last);
        w = leaf({32, 36, 3, 3}, is_plain ? last : at::MemoryFormat::Contiguous);
        y = ops::convolution(x.narrow(1, 4, 32), w, {}, {twos, ones, ones, true, ones, 1});
        break;
      default:
        x = leaf({2, 40, 3, 70}, is_plain ? at::MemoryFormat::Contiguous : last);
        w = leaf({33, 36, 3, 3}, last);
        y = ops::convolution(x.narrow(1, 2, 36), w, {}, {ones, twos, twos, false, none, 1});
    }
    const at::Tensor wave = at::linspace(-1, 1, y.numel(), y.options().requires_grad(false)).cos();
    (y * (is_plain ? wave.view(y.sizes()) : wave.view(y.transpose(1, 2).sizes()).transpose(1, 2)))
        .sum()
        .backward();
    return std::vector<at::Tensor>{x.grad(), w.grad()};
  };
  for (int way = 0; way < 6; ++way) {
    const auto exact = run(at::kDouble, way);
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const auto ours = run(type, way);
      for (std::size_t g = 0; g < exact.size(); ++g)
        EXPECT_LT(error_of(ours[g], exact[g]), type == at::kFloat ? 1e-5 : 3e-2)
            << way << ' ' << g << ' ' << type;
    }
  }
}

TEST(ConvWeightGrad, TakesWhatItCanRead) {
  if (ops::cpu::conv_kernels(false) == nullptr) GTEST_SKIP() << "no kernel for this processor";
  const auto has = [](const at::Tensor& image, const at::Tensor& grad, const Numbers& kernel) {
    const Numbers stride{1, 1}, padding{1, 1};
    return ops::cpu::has_conv_weight_grad(image, grad, {kernel, stride, padding});
  };
  const auto last = [](int64_t channels, int64_t side = 128) {
    return at::zeros({2, channels, side, side}).contiguous(at::MemoryFormat::ChannelsLast);
  };
  EXPECT_TRUE(has(last(32), last(32), {3, 3}));
  EXPECT_FALSE(has(last(4), last(32), {3, 3}));
  const bool is_wide = ops::cpu::conv_kernels(false)->lanes == 16;
  EXPECT_EQ(has(last(32, 8), last(32, 8), {3, 3}), !is_wide) << "few pixels";
  EXPECT_FALSE(has(last(32), last(32), {1, 1}));
  EXPECT_FALSE(has(last(32).contiguous(), last(32), {3, 3}));
  EXPECT_FALSE(has(last(32).to(at::kDouble), last(32).to(at::kDouble), {3, 3}));
  EXPECT_FALSE(has(last(32), last(32).to(at::kBFloat16), {3, 3}));
  EXPECT_FALSE(has(last(32).slice(0, 0, 0), last(32).slice(0, 0, 0), {3, 3}));
}

TEST(ConvWeightGrad, IsTheSameWithTheSameThreads) {
  if (ops::cpu::conv_kernels(false) == nullptr) GTEST_SKIP() << "no kernel for this processor";
  at::manual_seed(4);
  const ConvTensors tensors(kConvCases[1], at::kFloat);
  const int before = at::get_num_threads();
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    const at::Tensor first = tensors.ours();
    EXPECT_TRUE(first.equal(tensors.ours())) << threads;
    EXPECT_LT(error_of(first, tensors.gradients(at::kDouble)[1]), 1e-6) << threads;
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace cytra
