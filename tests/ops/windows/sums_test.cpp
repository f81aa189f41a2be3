#include "ops/windows/sums.h"

#include <ATen/ATen.h>

#include "inference/windows/windows.h"
#include "ops/windows/passes.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

using ops::Finish;

TEST(Finish, EqualsAten) {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{1, 1, 7}, {2, 5, 3, 9}, {1, 40, 4, 5, 6}}) {
    const at::Tensor sums = at::randn(shape) * 20;
    std::vector<int64_t> one = shape;
    one[0] = one[1] = 1;
    const at::Tensor weights = at::rand(one) + 0.1;
    for (const at::Tensor& divisor : {weights, at::Tensor()}) {
      const at::Tensor logits = divisor.defined() ? sums / divisor : sums;
      EXPECT_TRUE(ops::finish(sums, divisor, {}).equal(logits));
      const at::Tensor sigmoid = ops::finish(sums, divisor, {Finish::Kind::sigmoid});
      EXPECT_LT(test::max_difference(sigmoid, logits.sigmoid()), 5e-7);
      const at::Tensor softmax = ops::finish(sums, divisor, {Finish::Kind::softmax});
      // A logit's last bit, by which divisions on two processors differ, moves a class's share.
      const double bit = logits.abs().max().item<double>() * 0x1p-23;
      EXPECT_LT(test::max_difference(softmax, logits.softmax(1)), 1e-6 + bit);
      const at::Tensor exact = logits.to(at::kDouble);
      EXPECT_LT(test::max_difference(ops::finish(sums, divisor, {Finish::Kind::entropy}),
                                     at::special_entr(exact.softmax(1)).sum(1, true)),
                1e-5 + 8 * bit);
      EXPECT_LT(test::max_difference(
                    ops::finish(sums, divisor, {Finish::Kind::binary_entropy}),
                    at::special_entr(exact.sigmoid()) + at::special_entr((-exact).sigmoid())),
                1e-6);
      const at::Tensor classes = ops::finish(sums, divisor, {Finish::Kind::argmax, 0.5, at::kInt});
      EXPECT_TRUE(classes.equal(sums.argmax(1, true).to(at::kInt)));
      const at::Tensor mask = ops::finish(sums, divisor, {Finish::Kind::threshold, 0.7, at::kByte});
      EXPECT_TRUE(mask.equal(logits.sigmoid().gt(0.7).to(at::kByte)));
      const at::Tensor bytes = ops::finish(sums, divisor, {Finish::Kind::softmax, 0.5, at::kByte});
      EXPECT_LE(test::max_difference(bytes, logits.softmax(1) * 255), 0.501);
    }
  }
}

TEST(Finish, TakesALinearLayerFirst) {
  using Kind = Finish::Kind;
  const at::Tensor weights = at::rand({1, 1, 3, 7000}) + 0.1, sums = at::randn({2, 4, 3, 7000}) * 3;
  Finish finish;
  finish.weight = at::randn({9, 4});
  finish.bias = at::randn({9});
  const at::Tensor logits =
      at::einsum("kf,nfyx->nkyx", {finish.weight, sums / weights}) + finish.bias.view({9, 1, 1});
  for (const Kind kind : {Kind::logits, Kind::sigmoid, Kind::softmax, Kind::entropy}) {
    finish.kind = kind;
    const at::Tensor expected = ops::finish(logits, {}, {kind});
    EXPECT_LT(test::max_difference(ops::finish(sums, weights, finish), expected), 1e-4);
    EXPECT_EQ(finish.channels(4), expected.size(1));
  }
  finish.kind = Kind::argmax;
  const at::Tensor classes = ops::finish(sums, weights, finish);
  EXPECT_LE(classes.ne(logits.argmax(1, true)).sum().item<int64_t>(), 4);

  // One window over rows that are finished in parts, of which one is lost in the product.
  finish.kind = Kind::logits;
  ops::WindowGrid grid;
  for (const std::size_t d : {std::size_t{0}, std::size_t{2}}) {
    const int64_t size = d == 0 ? 5 : 3000;
    grid.axes[d] = {size, size, 0, {0}, {}, std::vector<float>(static_cast<std::size_t>(size), 2)};
  }
  const at::Tensor rows = at::randn({4, 5, 1, 3000}), out = at::empty({9, 4, 1, 3000}),
                   bad = at::zeros({1}, at::kLong);
  const auto finished = [&] { ops::finish_rows(rows, grid, 1, 5, finish, out, bad); };
  finished();
  const at::Tensor one = rows.narrow(1, 1, 4).unsqueeze(0) / 4;
  EXPECT_LT(test::max_difference(out, ops::finish(one, {}, finish)[0]), 1e-5);
  EXPECT_EQ(bad.item<int64_t>(), 0);
  rows.select(1, 3).fill_(3e38F);
  finish.weight.fill_(3e38F);
  finished();
  EXPECT_GT(bad.item<int64_t>(), 0);
}

TEST(Finish, TakesTheFirstOfEqualClasses) {
  const at::Tensor sums = at::zeros({1, 3, 9});
  EXPECT_EQ(ops::finish(sums, {}, {Finish::Kind::argmax, 0.5, at::kByte}).sum().item<int64_t>(), 0);
}

TEST(Finish, KeepsExtremes) {
  const at::Tensor sums =
      at::tensor({-1e30F, -200.F, -88.F, 0.F, 88.F, 200.F, 1e30F}).reshape({1, 1, 7});
  const at::Tensor sigmoid = ops::finish(sums, {}, {Finish::Kind::sigmoid});
  EXPECT_LT(test::max_difference(sigmoid, sums.sigmoid()), 1e-7);
  EXPECT_TRUE(ops::finish(sums, {}, {Finish::Kind::sigmoid, 0.5, at::kByte})
                  .equal((sums.sigmoid() * 255).round().to(at::kByte)));
}

TEST(Finish, EntropiesAreThoseOfScipy) {
  // scipy.stats.entropy([0.7, 0.2, 0.1]), entropy of 4 equal ones, of one that is certain
  const auto entropy = [](const at::Tensor& shares) {
    return ops::finish(shares.log().reshape({1, shares.numel(), 1}), {}, {Finish::Kind::entropy})
        .item<double>();
  };
  EXPECT_NEAR(entropy(at::tensor({0.7F, 0.2F, 0.1F})), 0.801818553255, 1e-6);
  EXPECT_NEAR(entropy(at::full({4}, 0.25F)), std::log(4), 1e-6);
  EXPECT_NEAR(entropy(at::tensor({1.F, 1e-37F})), 0, 1e-7);
  const at::Tensor logits = at::tensor({0.F, 100.F, -100.F, 1e30F}).reshape({1, 1, 4});
  EXPECT_LT(test::max_difference(ops::finish(logits, {}, {Finish::Kind::binary_entropy}),
                                 at::tensor({0.69314718F, 0.F, 0.F, 0.F}).reshape({1, 1, 4})),
            1e-7);
}

TEST(Finish, RefusesTypesThatValuesDoNotHave) {
  EXPECT_THROW(ops::finish(at::zeros({1, 2, 4}), {}, {Finish::Kind::logits, 0.5, at::kByte}),
               std::logic_error);
}

/// The kernels do on a ring of rows what ATen's operations do.
TEST(WindowSums, OnACpuEqualThoseByAten) {
  const ops::WindowPasses &kernels = ops::cpu_passes(), &operations = ops::aten_passes();
  struct Case {
    std::vector<int64_t> size, roi;
    const char *mode, *padding;
  };
  for (const Case& entry : std::vector<Case>{{{20, 9, 11}, {6, 4, 5}, "gaussian", "constant"},
                                             {{13, 17}, {5, 7}, "gaussian", "constant"},
                                             {{5, 9, 7}, {8, 4, 9}, "gaussian", "reflect"},
                                             {{9, 7}, {12, 3}, "constant", "constant"},
                                             {{30, 8}, {7, 8}, "cellpose", "constant"}}) {
    SCOPED_TRACE(entry.mode);
    inference::SlidingWindowOptions options;
    options.roi_size = entry.roi;
    options.overlap = {0.6};
    options.mode = entry.mode;
    options.padding_mode = entry.padding;
    const auto layout = inference::layout_windows(entry.size, options);
    ops::WindowGrid grid = make_grid(layout, options, layout.roi), with_map = grid;
    with_map.map = ops::window_map(grid);
    const auto& axes = grid.axes;
    const int64_t rows = std::min(axes[0].size, axes[0].roi);
    const at::Tensor image = at::rand({2, axes[0].size, axes[1].size, axes[2].size});
    const at::Tensor sums = at::full({2, rows, axes[1].size, axes[2].size}, 1e9),
                     other = sums.clone();
    const at::Tensor window = at::empty({1, 2, axes[0].roi, axes[1].roi, axes[2].roi});
    const int64_t per_row = static_cast<int64_t>(axes[1].starts.size() * axes[2].starts.size());
    for (int64_t w = 0; w < grid.windows(); ++w) {
      kernels.gather(image, grid, w, 0.5, window);
      const at::Tensor again = at::empty_like(window);
      operations.gather(image, grid, w, 0.5, again);
      ASSERT_TRUE(window.equal(again)) << w;
      kernels.accumulate(window, grid, w, sums);
      operations.accumulate(again, with_map, w, other);
      if ((w + 1) % per_row != 0) continue;
      const auto [begin, end] = grid.final_rows(w / per_row);
      for (const Finish::Kind kind : {Finish::Kind::logits, Finish::Kind::softmax}) {
        const at::Tensor out = at::empty({2, end - begin, axes[1].size, axes[2].size});
        const at::Tensor expected = at::empty_like(out);
        const at::Tensor bad = at::zeros({1}, at::kLong);
        kernels.finish_rows(sums, grid, begin, end, {kind}, out, bad);
        operations.finish_rows(other, with_map, begin, end, {kind}, expected, bad);
        EXPECT_EQ(bad.item<int64_t>(), 0);
        EXPECT_LT(test::max_difference(out, expected), 1e-6) << w;
        if (kind == Finish::Kind::softmax) continue;
        EXPECT_LT(test::max_difference(out, image.narrow(1, begin, end - begin)), 4e-6);
      }
    }
  }
}

TEST(WindowMap, OfWindowsThatRecurIsMadeOnce) {
  const auto grid_of = [](int64_t side, double sigma) {
    inference::SlidingWindowOptions options;
    options.roi_size = {side, 6};
    options.sigma_scale = {sigma};
    const auto layout = inference::layout_windows({20, 20}, options);
    return make_grid(layout, options, layout.roi);
  };
  const auto map_of = [&](int64_t side, double sigma) {
    at::Tensor map = ops::window_map(grid_of(side, sigma), at::kCPU);
    EXPECT_TRUE(map.equal(ops::window_map(grid_of(side, sigma)))) << side << ' ' << sigma;
    return map;
  };
  const at::Tensor first = map_of(8, 0.125);
  map_of(8, 0.25);
  EXPECT_TRUE(map_of(8, 0.125).is_same(first));
  for (int64_t side = 9; side < 15; ++side) map_of(side, 0.125);
  EXPECT_FALSE(map_of(8, 0.125).is_same(first)) << "a bounded number is kept";
  ops::WindowGrid given = grid_of(8, 0.125);
  given.map = at::rand({8, 1, 6});
  EXPECT_TRUE(ops::window_map(given, at::kCPU).is_same(given.map));
}

}  // namespace
}  // namespace cytra
