#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cytra {
namespace {

using Numbers = std::vector<int64_t>;

struct OneImage {
  Numbers image, weight, stride, padding, dilation;
};

/// torch unrolls each of them.
const std::vector<OneImage> kOneImages{
    {{1, 24, 9, 7, 10}, {20, 24, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {{1, 24, 9, 7, 10}, {20, 24, 3, 1, 2}, {2, 1, 2}, {1, 0, 1}, {1, 1, 1}},
    {{1, 16, 6, 7, 8}, {5, 16, 1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {{1, 16, 9, 9, 8}, {5, 16, 3, 3, 3}, {1, 1, 1}, {2, 2, 2}, {2, 2, 2}},
    {{1, 40, 8, 11}, {33, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{1, 40, 8, 11}, {33, 40, 3, 2}, {2, 1}, {1, 0}, {1, 1}},
};

std::vector<at::Tensor> conv_and_gradients(const OneImage& form,
                                           const at::Tensor& image,
                                           const at::Tensor& kernel,
                                           const at::Tensor& offset) {
  const at::Tensor x = image.detach().requires_grad_(), w = kernel.detach().requires_grad_(),
                   b = offset.defined() ? offset.detach().requires_grad_() : at::Tensor();
  const auto y = at::convolution(
      x, w, b, form.stride, form.padding, form.dilation, false, Numbers(form.stride.size()), 1);
  y.square().sum().backward();
  std::vector<at::Tensor> all{y.detach(), x.grad(), w.grad()};
  if (b.defined()) all.push_back(b.grad());
  return all;
}

TEST(ConvOneDnn, OfOneImageEqualsTorchsInDouble) {
  at::manual_seed(4);
  for (std::size_t i = 0; i < kOneImages.size(); ++i) {
    const OneImage& form = kOneImages[i];
    const at::Tensor image = at::randn(form.image), kernel = at::randn(form.weight);
    for (const at::Tensor& offset : {at::Tensor(), at::randn(form.weight[0])}) {
      const auto exact = conv_and_gradients(form,
                                            image.to(at::kDouble),
                                            kernel.to(at::kDouble),
                                            offset.defined() ? offset.to(at::kDouble) : offset);
      for (const bool is_last : {false, true}) {
        const auto last =
            image.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
        const auto format = is_last ? last : at::MemoryFormat::Contiguous;
        const auto ours =
            conv_and_gradients(form, image.contiguous(format), kernel.contiguous(format), offset);
        ASSERT_EQ(ours.size(), exact.size());
        for (std::size_t g = 0; g < ours.size(); ++g) {
          const double error = (ours[g] - exact[g]).abs().max().item<double>();
          EXPECT_LT(error, 2e-6 * exact[g].abs().max().item<double>()) << i << g << is_last;
        }
        EXPECT_TRUE(ours[0].is_contiguous(format)) << i;
      }
    }
  }
}

TEST(ConvOneDnn, ServesTorchsConvolution) {
  if (!at::hasMKLDNN()) GTEST_SKIP() << "torch without oneDNN";
  at::manual_seed(5);
  for (const OneImage& form : kOneImages) {
    const at::Tensor image = at::randn(form.image), kernel = at::randn(form.weight);
    EXPECT_TRUE(conv_and_gradients(form, image, kernel, {})[0].equal(at::mkldnn_convolution(
        image, kernel, std::nullopt, form.padding, form.stride, form.dilation, 1)));
  }
}

/// torch 2.11 alone writes beyond the output, or not all of it (channels last; processors with
/// AVX512_BF16, and in float32 the gradient through a transposed convolution with one output).
TEST(ConvOneDnn, NarrowImagesAreWhatTheyAreInDouble) {
  struct Narrow {
    Numbers image, weight, stride, padding;
    int64_t groups = 1;
    bool transposed = false;
  };
  const std::vector<Narrow> cases{
      {{2, 16, 5, 4}, {16, 16, 1, 4}, {1, 4}, {0, 0}},
      {{2, 4, 5, 15}, {4, 4, 3, 7}, {8, 8}, {1, 3}},
      {{2, 3, 16, 16}, {32, 3, 16, 16}, {16, 16}, {0, 0}},
      {{2, 16, 3, 208}, {16, 16, 1, 16}, {1, 32}, {0, 8}},
      {{4, 32, 4, 5}, {64, 1, 3, 3}, {1, 3}, {1, 0}, 32},
      {{1, 2, 1, 4, 2}, {4, 1, 5, 2, 3}, {2, 2, 2}, {2, 0, 1}, 2},
      {{2, 32, 1, 6, 8}, {64, 1, 5, 5, 5}, {2, 1, 3}, {2, 2, 2}, 32},
      {{33, 16, 1, 7, 1}, {16, 1, 3, 3, 3}, {1, 1, 1}, {1, 1, 0}, 1, true},
      {{4, 8, 1, 15, 1}, {8, 1, 5, 5, 5}, {2, 2, 2}, {2, 2, 2}, 1, true},
      {{2, 24, 2, 9, 1}, {24, 1, 5, 5, 5}, {1, 1, 2}, {2, 2, 0}, 1, true},
      {{2, 16, 5, 1}, {16, 16, 4, 4}, {4, 4}, {0, 0}, 1, true},
  };
  at::manual_seed(9);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Narrow& c = cases[i];
    const auto last =
        c.image.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
    const at::Tensor image = at::randn(c.image).to(at::kBFloat16).contiguous(last),
                     weight = at::randn(c.weight).to(at::kBFloat16);
    const auto all = [&](at::ScalarType type) {
      const Numbers none(c.stride.size(), 0), ones(c.stride.size(), 1);
      const at::Tensor x = image.detach().to(type).requires_grad_(),
                       w = weight.detach().to(type).requires_grad_();
      at::full({1 << 14}, 3e38, at::kBFloat16);  // what memory held earlier
      const at::Tensor y =
          at::convolution(x, w, {}, c.stride, c.padding, ones, c.transposed, none, c.groups);
      y.backward(at::linspace(-1, 1, y.numel(), y.options()).cos().view(y.sizes()));
      return std::vector<at::Tensor>{y.detach(), x.grad(), w.grad()};
    };
    const auto exact = all(at::kDouble);
    for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
      const auto ours = all(type);
      for (std::size_t g = 0; g < exact.size(); ++g) {
        const at::Tensor error = (ours[g].to(at::kDouble) - exact[g]).abs().max();
        EXPECT_LT(error.item<double>(),
                  (type == at::kFloat ? 1e-5 : 2e-2) * exact[g].abs().max().item<double>())
            << i << ' ' << g << ' ' << type;
      }
    }
  }
}

TEST(ConvOneDnn, OptionsThatTorchRefusesAreItsErrors) {
  const at::Tensor x = at::ones({1, 2, 4, 4}), w = at::ones({2, 2, 2, 2});
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t stride : {0, -1})
      EXPECT_THROW(at::conv2d(x.to(type), w.to(type), {}, {stride}), c10::Error) << stride;
    EXPECT_THROW(at::conv2d(x.to(type), at::ones({2, 3, 2, 2}, type), {}, {2}), c10::Error);
  }
}

}  // namespace
}  // namespace cytra
