#include "report/panel.h"

#include <array>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "io/objects/palette.h"

namespace cytra::report {
namespace {

TEST(Panel, ShowsGreyLabelsAndShares) {
  at::Tensor stack = at::zeros({1, 3, 2, 2});
  stack[0][1] = at::tensor({0.F, 10.F, 20.F, 30.F}).view({2, 2});  // the middle plane
  const at::Tensor labels =
      at::tensor({0.F, 1.F, 2.F, 9.F}).view({1, 1, 2, 2}).expand({1, 3, 2, 2});
  const at::Tensor shares =
      at::tensor({0.F, 0.5F, 0.2F, 1.F}).view({1, 1, 2, 2}).expand({1, 3, 2, 2});
  const io::Image panel =
      draw_panel({{"input", stack}, {"prediction", shares}, {"target", labels}});
  EXPECT_EQ(panel.shape, (std::array<int64_t, 4>{3, 1, 2, 14}));
  const auto pixel = [&](std::size_t y, std::size_t x) {
    std::array<unsigned char, 3> colour{};
    for (std::size_t c = 0; c < 3; ++c) colour[c] = panel.pixels[(c * 2 + y) * 14 + x];
    return colour;
  };
  using Colour = std::array<unsigned char, 3>;
  EXPECT_EQ(pixel(0, 0), (Colour{0, 0, 0}));
  EXPECT_EQ(pixel(1, 0), (Colour{255, 255, 255})) << "20 of 0..20: the 99.8th percentile of four";
  EXPECT_EQ(pixel(0, 1), (Colour{127, 127, 127}));
  EXPECT_EQ(pixel(0, 3), (Colour{128, 128, 128})) << "the gap";
  EXPECT_EQ(pixel(0, 6), (Colour{0, 0, 0})) << "background";
  EXPECT_EQ(pixel(0, 7), io::label_colour(1));
  EXPECT_EQ(pixel(1, 6), io::label_colour(2));
  EXPECT_EQ(pixel(1, 7), io::label_colour(2)) << "9 has the colour of 2";
  EXPECT_EQ(pixel(0, 13), (Colour{127, 127, 127})) << "0.5 of 0..1";
}

TEST(Panel, SharesTheContrastOfTheTargetAndShrinks) {
  const at::Tensor target = at::tensor({-1.F, 0.5F, 1.F, 1.F}).view({1, 2, 2});
  const at::Tensor prediction = at::tensor({-1.F, 0.F, 0.F, 7.F}).view({1, 2, 2});
  const io::Image panel = draw_panel({{"prediction", prediction}, {"target", target}});
  EXPECT_EQ(panel.pixels[6], 0);
  EXPECT_EQ(panel.pixels[7], 127);
  EXPECT_EQ(panel.pixels[15], 255);
  const io::Image small = draw_panel({{"input", at::rand({3, 600, 1300})}});
  EXPECT_EQ(small.shape, (std::array<int64_t, 4>{3, 1, 200, 434}));
}

}  // namespace
}  // namespace cytra::report
