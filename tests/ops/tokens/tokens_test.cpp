#include "ops/tokens/tokens.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

namespace cytra {
namespace {

/// Of tensor operations: the kernels' sums are grouped in another way.
void expect_same(const at::Tensor& found, const at::Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_LT((found - expected).abs().max().item<double>(),
            1e-5 * expected.abs().max().item<double>());
}

at::Tensor image_of(const at::Tensor& tiles, int64_t side) {
  return tiles.transpose(1, 2).flatten(2).slice(2, 0, side * side).unflatten(2, {side, side});
}

ops::ChannelScale scale_of(int64_t channels) {
  return {at::rand({channels}) + 0.5, at::randn({channels}), 1e-6};
}
at::Tensor norm_of(const at::Tensor& x, const ops::ChannelScale& scale) {
  return at::layer_norm(x.movedim(1, -1), scale.weight.sizes(), scale.weight, scale.bias, scale.eps)
      .movedim(-1, 1);
}

// Sides with whole and with broken tiles; channels and rows that leave rests of every block.
struct TokenCase {
  int64_t images, side, channels, rows, group;
};
const TokenCase kTokenCases[] = {
    {3, 8, 64, 28, 7}, {1, 5, 24, 9, 3}, {2, 3, 16, 1, 1}, {1, 20, 40, 64, 8}};

TEST(Tokens, AreTheImageInTilesWithZerosBehind) {
  const at::Tensor image = at::randn({2, 8, 5, 5});
  const at::Tensor tiles = ops::to_token_tiles(image);
  EXPECT_EQ(tiles.sizes(), at::IntArrayRef({2, 1, 8, 32}));
  EXPECT_TRUE(image_of(tiles, 5).equal(image));
  EXPECT_EQ(tiles.slice(3, 25).abs().max().item<float>(), 0);
}

TEST(Tokens, AreWeighedBySoftmax) {
  at::manual_seed(1);
  for (const auto& [images, side, channels, rows, group] : kTokenCases) {
    SCOPED_TRACE(side);
    const at::Tensor image = at::randn({images, channels, side, side}) + 0.3;
    const at::Tensor places = at::randn({1, channels, side, side});
    const at::Tensor queries = at::randn({images, rows, channels});
    const at::Tensor scores = at::matmul(queries, (image + places).flatten(2));
    const at::Tensor tiles = ops::to_token_tiles(image), own = ops::to_token_tiles(places)[0];
    expect_same(ops::weigh_tokens(tiles, own, queries, side),
                at::matmul(scores.softmax(2), image.flatten(2).transpose(1, 2)));
    // One token alone counts where its score is larger by far.
    const at::Tensor far = ops::weigh_tokens(tiles, own, queries * 1e4, side);
    EXPECT_TRUE(far.isfinite().all().item<bool>());
  }
}

TEST(Tokens, AreUpdatedByKeysAndValues) {
  at::manual_seed(2);
  for (const auto& [images, side, channels, rows, group] : kTokenCases) {
    SCOPED_TRACE(side);
    const at::Tensor image = at::randn({images, channels, side, side});
    const at::Tensor places = at::randn({1, channels, side, side});
    const at::Tensor keys = at::randn({images, rows, channels}),
                     key_bias = at::randn({images, rows}),
                     values = at::randn({images, rows, channels}), bias = at::randn({channels});
    const ops::ChannelScale norm = scale_of(channels);
    const at::Tensor scores = at::matmul(keys, (image + places).flatten(2)) + key_bias.unsqueeze(2);
    const at::Tensor weights = scores.unflatten(1, {-1, group}).softmax(2).flatten(1, 2);
    const at::Tensor seen = at::matmul(values.transpose(1, 2), weights).view_as(image);
    const at::Tensor tiles = ops::to_token_tiles(image);
    ops::update_tokens(
        tiles, ops::to_token_tiles(places)[0], keys, key_bias, values, group, bias, norm);
    expect_same(image_of(tiles, side), norm_of(image + seen + bias.view({1, -1, 1, 1}), norm));
  }
}

TEST(Tokens, BecomeMasks) {
  at::manual_seed(3);
  for (const auto& [images, side, channels, rows, group] : kTokenCases) {
    SCOPED_TRACE(side);
    const int64_t middle = channels / 4, last = channels / 8;
    const at::Tensor image = at::randn({images, channels, side, side}),
                     factors = at::randn({images, group, last});
    const ops::TokenUpscaling layers{at::randn({channels, middle, 2, 2}),
                                     at::randn({middle}),
                                     scale_of(middle),
                                     at::randn({middle, last, 2, 2}),
                                     at::randn({last})};
    const auto twice = [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
      return at::conv_transpose2d(x, weight, bias, {2, 2});
    };
    const at::Tensor first = norm_of(twice(image, layers.first, layers.first_bias), layers.norm);
    const at::Tensor pixels = twice(at::gelu(first), layers.second, layers.second_bias);
    expect_same(
        ops::paint_masks(ops::to_token_tiles(image), side, layers, factors),
        at::matmul(factors, at::gelu(pixels).flatten(2)).unflatten(2, {4 * side, 4 * side}));
  }
}

TEST(Tokens, TakeMasksIn) {
  at::manual_seed(4);
  for (const auto& [images, side, channels, rows, group] : kTokenCases) {
    SCOPED_TRACE(side);
    const int64_t first = group, second = 2 * group + 1;
    const at::Tensor image = at::randn({images, channels, side, side}),
                     masks = at::randn({images, 1, 4 * side, 4 * side});
    const ops::MaskDownscaling layers{at::randn({first, 1, 2, 2}),
                                      at::randn({first}),
                                      scale_of(first),
                                      at::randn({second, first, 2, 2}),
                                      at::randn({second}),
                                      scale_of(second),
                                      at::randn({channels, second, 1, 1}),
                                      at::randn({channels})};
    at::Tensor x = at::conv2d(masks, layers.first, layers.first_bias, {2, 2});
    x = at::conv2d(
        at::gelu(norm_of(x, layers.first_norm)), layers.second, layers.second_bias, {2, 2});
    x = at::conv2d(at::gelu(norm_of(x, layers.second_norm)), layers.last, layers.last_bias);
    expect_same(image_of(ops::embed_masks(image, masks, layers), side), image + x);
  }
}

TEST(Tokens, DoNotDependOnThreadsNorOnOtherImages) {
  at::manual_seed(5);
  const at::Tensor image = at::randn({5, 16, 9, 9}), places = at::randn({1, 16, 9, 9}),
                   queries = at::randn({5, 14, 16});
  const at::Tensor own = ops::to_token_tiles(places)[0];
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  const at::Tensor together = ops::weigh_tokens(ops::to_token_tiles(image), own, queries, 9);
  at::set_num_threads(1);
  for (int64_t i = 0; i < 5; ++i) {
    const at::Tensor alone = ops::weigh_tokens(
        ops::to_token_tiles(image.slice(0, i, i + 1)), own, queries.slice(0, i, i + 1), 9);
    EXPECT_TRUE(alone[0].equal(together[i])) << i;
  }
  at::set_num_threads(threads);
}

TEST(Tokens, AreNotForGradientsNorForOtherTypes) {
  EXPECT_FALSE(ops::has_token_kernels(at::ones({1})));
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(ops::has_token_kernels(at::ones({1})));
  EXPECT_FALSE(ops::has_token_kernels(at::ones({1}, at::kBFloat16)));
  EXPECT_FALSE(ops::has_token_kernels(at::ones({1}, at::kDouble)));
}

}  // namespace
}  // namespace cytra
