
#include <array>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ops/tokens/tokens.h"

namespace cytra {
namespace {

// Equals torch's attention with the sum as a mask, for sides with whole and with broken tiles.
TEST(SquareAttention, AddsWhatRowsAndColumnsSay) {
  at::manual_seed(1);
  for (const auto& [images, side, heads, part] :
       {std::array<int64_t, 4>{2, 8, 3, 32}, {3, 7, 2, 5}, {1, 14, 2, 20}, {2, 1, 1, 8}}) {
    SCOPED_TRACE(side);
    const int64_t count = side * side;
    const at::Tensor qkv = at::randn({images, count, 3 * heads * part});
    const at::Tensor down = at::randn({images, heads, count, side}) * 2,
                     across = at::randn({images, heads, count, side}) * 2;
    const auto heads_of = [&](int64_t which) {
      return qkv.chunk(3, 2)[static_cast<std::size_t>(which)]
          .unflatten(2, {heads, part})
          .transpose(1, 2);
    };
    const at::Tensor bias = (down.unsqueeze(4) + across.unsqueeze(3)).flatten(3);
    const at::Tensor expected =
        at::scaled_dot_product_attention(heads_of(0), heads_of(1), heads_of(2), bias)
            .transpose(1, 2)
            .flatten(2);
    const at::Tensor found = ops::attend_square(qkv, down, across);
    ASSERT_EQ(found.sizes(), expected.sizes());
    EXPECT_LT((found - expected).abs().max().item<double>(),
              1e-5 * expected.abs().max().item<double>());
    const at::Tensor alone = ops::attend_square(
        qkv.slice(0, images - 1), down.slice(0, images - 1), across.slice(0, images - 1));
    EXPECT_TRUE(alone[0].equal(found[images - 1])) << "other images do not count";
  }
}

}  // namespace
}  // namespace cytra
