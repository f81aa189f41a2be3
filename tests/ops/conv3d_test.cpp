#include "ops/conv3d.h"

#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cytra {
namespace {

std::vector<at::Tensor> conv3d_and_gradients(const at::Tensor& image,
                                             const at::Tensor& kernel,
                                             bool has_bias,
                                             int64_t stride,
                                             bool is_ours) {
  const at::Tensor x = image.detach().requires_grad_(true),
                   weight = kernel.detach().requires_grad_(true),
                   bias =
                       has_bias
                           ? at::linspace(-1, 1, kernel.size(0), at::kDouble).requires_grad_(true)
                           : at::Tensor();
  const std::vector<int64_t> step(3, stride), padding(3, kernel.size(2) / 2), dilation(3, 1);
  const at::Tensor y = is_ours ? ops::conv3d(x, weight, bias, step, padding, dilation, 1)
                               : at::conv3d(x, weight, bias, step, padding, dilation, 1);
  y.square().sum().backward();
  std::vector<at::Tensor> results{y.detach(), x.grad(), weight.grad()};
  if (has_bias) results.push_back(bias.grad());
  return results;
}

TEST(Conv3d, EqualsTorchs) {
  at::manual_seed(1);
  for (const int64_t side : {1, 3}) {
    for (const int64_t stride : {1, 2}) {
      for (const bool is_last : {false, true}) {
        for (const bool has_bias : {false, true}) {
          const auto format =
              is_last ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::Contiguous;
          const at::Tensor x = at::randn({2, 5, 4, 5, 6}, at::kDouble).contiguous(format);
          const at::Tensor kernel =
              at::randn({3, 5, side, side, side}, at::kDouble).contiguous(format);
          const auto ours = conv3d_and_gradients(x, kernel, has_bias, stride, true),
                     torchs = conv3d_and_gradients(x, kernel, has_bias, stride, false);
          for (std::size_t i = 0; i < ours.size(); ++i)
            EXPECT_TRUE(at::allclose(ours[i], torchs[i])) << side << stride << is_last << i;
          if (is_last && side == 1 && stride == 1) {
            EXPECT_TRUE(ours[0].is_contiguous(format));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cytra
