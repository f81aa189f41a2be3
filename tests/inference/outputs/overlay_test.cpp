#include <array>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "inference/outputs/draw_overlay.h"
#include "io/objects/palette.h"

namespace cytra::inference {
namespace {

using Colour = std::array<int, 3>;

Colour pixel(const io::Image& picture, int64_t y, int64_t x) {
  Colour colour{};
  for (int64_t c = 0; c < 3; ++c) {
    const int64_t place = (c * picture.shape[2] + y) * picture.shape[3] + x;
    colour[static_cast<std::size_t>(c)] = picture.pixels.at(static_cast<std::size_t>(place));
  }
  return colour;
}

/// A grey value with a share of a class's colour over it.
Colour mixed(double grey, int64_t label, double share) {
  Colour colour{};
  for (std::size_t c = 0; c < 3; ++c)
    colour[c] = static_cast<int>((1 - share) * grey + share * io::label_colour(label)[c] + 0.5);
  return colour;
}
constexpr double kEdge = 0.9, kInside = 0.15;

Colour grey_of(int value) {
  return {value, value, value};
}

/// (1,8,10): 0 on the left to 255 on the right, where the outermost columns set the range.
at::Tensor ramp() {
  return (at::arange(10, at::TensorOptions(at::kFloat)) * (255 / 9.0)).expand({1, 8, 10});
}
double shade_of(int64_t x) {
  return 255 / 9.0 * static_cast<double>(x);
}

TEST(Overlay, HasTheImageUnderATintAndAnOutlineOfEachClass) {
  at::Tensor mask = at::zeros({8, 10}, at::TensorOptions(at::kInt));
  mask.slice(0, 1, 6).slice(1, 1, 5).fill_(1);  // rows 1 to 5, columns 1 to 4
  mask.slice(0, 1, 6).slice(1, 5, 8).fill_(2);  // beside it, columns 5 to 7
  const io::Image picture = draw_overlay(ramp(), mask);
  EXPECT_EQ(picture.dtype, io::Dtype::u8);
  ASSERT_EQ(picture.shape, (std::array<int64_t, 4>{3, 1, 8, 10}));
  for (int64_t y = 0; y < 8; ++y) {
    for (int64_t x = 0; x < 10; ++x) {
      const bool is_inside = y >= 1 && y <= 5 && x >= 1 && x <= 7;
      const int64_t label = !is_inside ? 0 : x <= 4 ? 1 : 2;
      const bool is_edge = is_inside && (y == 1 || y == 5 || x == 1 || x == 4 || x == 5 || x == 7);
      const Colour expected = label == 0 ? mixed(shade_of(x), 1, 0)
                                         : mixed(shade_of(x), label, is_edge ? kEdge : kInside);
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_NEAR(pixel(picture, y, x)[c], expected[c], 1) << y << " " << x << " " << c;
    }
  }
  EXPECT_EQ(pixel(picture, 0, 0), grey_of(0));
  EXPECT_EQ(pixel(picture, 0, 9), grey_of(255));
}

TEST(Overlay, ThreeChannelsKeepTheirColours) {
  at::Tensor image = at::zeros({3, 8, 10});
  image[0].fill_(255);
  image[1].fill_(100);
  const io::Image picture = draw_overlay(image, at::zeros({8, 10}, at::kInt));
  EXPECT_EQ(pixel(picture, 4, 5), (Colour{255, 100, 0}));
  const io::Image first = draw_overlay(image.narrow(0, 1, 2), at::zeros({8, 10}, at::kInt));
  EXPECT_EQ(pixel(first, 4, 5)[0], pixel(first, 4, 5)[1]) << "two channels are no colours";
}

TEST(Overlay, TheEdgeOfTheImageIsNoOutline) {
  const io::Image picture =
      draw_overlay(ramp(), at::full({8, 10}, 3, at::TensorOptions(at::kByte)));
  for (const auto& [y, x] : {std::pair{0, 0}, {7, 9}, {0, 9}, {4, 4}}) {
    for (std::size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(pixel(picture, y, x)[c], mixed(shade_of(x), 3, kInside)[c], 1) << y << " " << x;
  }
}

TEST(Overlay, SingleBrightPixelsDoNotDarkenTheRest) {
  at::Tensor image =
      at::arange(10'000, at::TensorOptions(at::kFloat)).remainder(1000).view({1, 100, 100}) / 100;
  image[0][20][20] = 5;
  image[0][50][50] = 1e6;
  const io::Image picture = draw_overlay(image, at::zeros({100, 100}, at::kInt));
  EXPECT_EQ(pixel(picture, 50, 50), grey_of(255));
  EXPECT_NEAR(pixel(picture, 20, 20)[0], 127, 5) << "9.99 is white, not a million";
}

TEST(Overlay, OfAStackItIsThePlaneWithMostForeground) {
  at::Tensor stack = at::zeros({2, 3, 8, 10});  // the second channel is not shown
  stack[0][2] = ramp()[0];
  stack[1].fill_(100);
  at::Tensor mask = at::zeros({3, 8, 10}, at::TensorOptions(at::kInt));
  mask[1][2][2] = 1;
  mask[2].slice(0, 2, 5).slice(1, 2, 5).fill_(9);
  const io::Image picture = draw_overlay(stack, mask);
  ASSERT_EQ(picture.shape, (std::array<int64_t, 4>{3, 1, 8, 10}));
  EXPECT_EQ(pixel(picture, 0, 0), grey_of(0));
  EXPECT_EQ(pixel(picture, 0, 9), grey_of(255));
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_NEAR(pixel(picture, 3, 3)[c], mixed(shade_of(3), 9, kInside)[c], 1);
}

TEST(Overlay, OfALargeImageIsSmaller) {
  at::Tensor mask = at::zeros({5000, 2100}, at::TensorOptions(at::kInt));
  mask.slice(0, 0, 2500).fill_(1);
  const at::Tensor image = at::arange(2100, at::TensorOptions(at::kFloat)).expand({1, 5000, 2100});
  const io::Image picture = draw_overlay(image, mask);
  ASSERT_EQ(picture.shape, (std::array<int64_t, 4>{3, 1, 1667, 700}));  // by 3
  EXPECT_EQ(pixel(picture, 100, 5), mixed(0, 1, kInside));
  EXPECT_EQ(pixel(picture, 833, 5), mixed(0, 1, kEdge));  // rows 2499 to 2501 of the mask
  EXPECT_EQ(pixel(picture, 834, 5), grey_of(0));
  EXPECT_EQ(pixel(picture, 1666, 699), grey_of(255));
}

}  // namespace
}  // namespace cytra::inference
