#include "nn/dropout.h"

#include <future>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "nn/model.h"

namespace cytra::nn {
namespace {

at::Tensor sample_of(Model& model, const at::Tensor& image, uint64_t seed) {
  const SampleDropout dropping(seed);
  return model(image);
}

// Networks that drop in a layer of its own, in attention, in an MLP and after a patch embedding.
TEST(SampleDropout, DropsInEvaluationAndRepeatsItself) {
  const c10::InferenceMode no_gradients;
  for (const char* options :
       {"{_target_: DynUNet, filters: [4, 8], strides: [1, 2], kernel_size: [3, 3], "
        "upsample_kernel_size: [2], dropout: 0.3}",
        "{_target_: SwinUNETR, spatial_dims: 2, in_channels: 1, out_channels: 2, feature_size: 12, "
        "drop_rate: 0.2}",
        "{_target_: UNETR, spatial_dims: 2, in_channels: 1, out_channels: 2, img_size: [64, 64], "
        "feature_size: 4, hidden_size: 12, mlp_dim: 24, num_heads: 3, dropout_rate: 0.2}"}) {
    SCOPED_TRACE(options);
    const auto model = make<Model>(options);
    model->eval();
    const at::Tensor image = at::randn({1, 1, 64, 64}), plain = (*model)(image);
    const at::Tensor first = sample_of(*model, image, 1);
    EXPECT_FALSE(at::equal(first, plain));
    EXPECT_FALSE(at::equal(first, sample_of(*model, image, 2)));
    EXPECT_TRUE(at::equal(first, sample_of(*model, image, 1)));
    EXPECT_TRUE(at::equal((*model)(image), plain));  // after the scope
  }
}

// Threads drew from one generator in turns, so a sample was another one in each run.
TEST(SampleDropout, ThreadsSampleOneAfterTheOther) {
  const at::Tensor x = at::ones({64, 64});
  const auto sample = [&] {
    const SampleDropout dropping(5);
    at::Tensor sum = at::zeros_like(x);
    for (int i = 0; i < 200; ++i) sum = sum + nn::dropout(x, 0.5, false);
    return sum;
  };
  const at::Tensor alone = sample();
  std::vector<std::future<at::Tensor>> beside;
  for (int i = 0; i < 4; ++i) beside.push_back(std::async(std::launch::async, sample));
  for (std::future<at::Tensor>& one : beside) EXPECT_TRUE(one.get().equal(alone));
}

TEST(SampleDropout, TellsWhetherAnythingWasDropped) {
  const c10::InferenceMode no_gradients;
  const at::Tensor x = at::ones({2, 8, 16, 16});
  SampleDropout dropping(0);
  EXPECT_TRUE(at::equal(nn::dropout(x, 0, false), x));
  EXPECT_FALSE(dropping.has_dropped());
  const at::Tensor channels = nn::dropout(x, 0.5, false, /*channels=*/true);
  EXPECT_TRUE(dropping.has_dropped());
  const at::Tensor of_channel = channels.flatten(2);
  EXPECT_TRUE(at::equal(of_channel.amin(2), of_channel.amax(2)));  // whole ones
  EXPECT_TRUE(((channels == 0) | (channels == 2)).all().item<bool>());
}

}  // namespace
}  // namespace cytra::nn
