#include "nn/fcos.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "nn/detection_model.h"
#include "tests/support/golden.h"

namespace cytra::nn {
namespace {

const std::vector<int64_t> kFcosStrides{4, 8, 16};

/// (N,C,A) as levels of an image.
std::vector<at::Tensor> fcos_levels(const at::Tensor& joined, int64_t height, int64_t width) {
  std::vector<at::Tensor> levels;
  int64_t begin = 0;
  for (const int64_t stride : kFcosStrides) {
    const int64_t rows = height / stride, columns = width / stride;
    levels.push_back(joined.narrow(2, begin, rows * columns)
                         .reshape({joined.size(0), joined.size(1), rows, columns}));
    begin += rows * columns;
  }
  return levels;
}

TEST(Fcos, TargetsAndLossesEqualTorchvision) {
  const test::Golden golden("detection");
  const auto& entry = golden.at("fcos");
  const ops::Boxes objects{entry.tensor("boxes"), {}, entry.tensor("labels")};
  const ops::Boxes none{at::zeros({0, 4}), {}, at::zeros({0}, at::kLong)};
  const at::Tensor target = at::stack({fcos_target(objects, kFcosStrides, {64, 96}, 1.5),
                                       fcos_target(none, kFcosStrides, {64, 96}, 1.5)});
  const at::Tensor matched = entry.tensor("matched");
  EXPECT_TRUE(at::equal(target.select(1, 0).select(1, 0).ge(0), matched.ge(0)));
  const at::Tensor places = matched[0].ge(0).nonzero().select(1, 0);
  ASSERT_GT(places.size(0), 20);
  const at::Tensor which = matched[0].index_select(0, places).to(at::kLong);
  EXPECT_TRUE(at::equal(target[0].select(1, 0).slice(0, 1).index_select(1, places).t().contiguous(),
                        objects.corners.index_select(0, which)));
  const FcosLoss loss =
      fcos_loss(fcos_levels(entry.tensor("outputs"), 64, 96), target, kFcosStrides);
  const auto expect = [&](const at::Tensor& ours, const char* role) {
    const double expected = entry.tensor(role).item<double>();
    EXPECT_NEAR(ours.item<double>(), expected, 1e-5 * std::abs(expected)) << role;
  };
  expect(loss.classification, "classification");
  expect(loss.box, "bbox_regression");
  expect(loss.centerness, "bbox_ctrness");
}

TEST(Fcos, BoxesEqualTorchvision) {
  const test::Golden golden("detection");
  const auto& entry = golden.at("fcos");
  const auto found = decode_fcos(
      fcos_levels(entry.tensor("outputs"), 64, 96), kFcosStrides, {61, 93}, {0.3, 0.5, 40, 20});
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string end = "." + std::to_string(i);
    EXPECT_LT(test::max_difference(found[i].corners, entry.tensor("boxes" + end)), 1e-4);
    EXPECT_LT(test::max_difference(found[i].scores, entry.tensor("scores" + end)), 1e-6);
    EXPECT_TRUE(at::equal(found[i].classes, entry.tensor("labels" + end)));
  }
}

TEST(Fcos, GradientsOfAnEmptyBatchAreFinite) {
  const auto model = std::dynamic_pointer_cast<DetectionModel>(
      make<Model>("{_target_: FCOS, filters: [8, 8, 8], width: 32, num_convs: 1}"));
  ASSERT_NE(model, nullptr);
  const ops::Boxes none{at::zeros({0, 4}), {}, at::zeros({0}, at::kLong)};
  const at::Tensor target = model->target(none, {32, 32}, 1.5).unsqueeze(0);
  model->loss(model->all(at::rand({1, 1, 32, 32})), target).backward();
  for (const at::Tensor& parameter : model->parameters())
    EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>());
}

TEST(Fcos, FindsInImagesOfAnySides) {
  const auto model = std::dynamic_pointer_cast<DetectionModel>(
      make<Model>("{_target_: FCOS, filters: [8, 8, 8], width: 32, num_convs: 1}"));
  model->eval();
  const at::NoGradGuard no_grad;
  BoxOptions all;
  all.score_thresh = 0;
  const auto found = find_boxes(*model, at::rand({2, 1, 21, 35}), all);
  ASSERT_EQ(found.size(), 2U);
  ASSERT_GT(found[0].corners.size(0), 0);
  EXPECT_LE(found[0].corners.select(1, 2).max().item<float>(), 35);
  EXPECT_LE(found[0].corners.select(1, 3).max().item<float>(), 21);
  EXPECT_GE(found[0].corners.min().item<float>(), 0);
}

/// Outputs of one level of stride 4 in which every place has a good object around it.
at::Tensor everywhere(int64_t rows, int64_t columns) {
  const at::Tensor level = at::full({1, 6, rows, columns}, 4.0);
  level.narrow(1, 1, 4).fill_(0.4);  // strides to each side
  return level;
}

TEST(Fcos, FindsNothingInThePadding) {  // else it takes the places of what is in the image
  BoxOptions options;
  options.detections_per_img = 6;
  const auto found = decode_fcos({everywhere(8, 8)}, {4}, {5, 9}, options).front();
  ASSERT_EQ(found.corners.size(0), 6);  // 2 x 3 places whose cells reach into the image
  const at::Tensor sides = found.corners.slice(1, 2) - found.corners.slice(1, 0, 2);
  EXPECT_GT(sides.min().item<float>(), 0);
  EXPECT_LT(found.corners.select(1, 0).max().item<float>(), 9);
  EXPECT_LT(found.corners.select(1, 1).max().item<float>(), 5);
}

TEST(Fcos, LeavesOutBoxesWithoutArea) {
  const at::Tensor level = everywhere(2, 2);
  level.narrow(1, 1, 4).fill_(0.1);  // around 2 and 6 by 0.4: not within 5 columns
  const auto found = decode_fcos({level}, {4}, {8, 5}, {}).front();
  EXPECT_EQ(found.corners.size(0), 2);
  EXPECT_LT(found.corners.select(1, 2).max().item<float>(), 3);
}

TEST(Fcos, PadsByMirroring) {
  const auto model = std::dynamic_pointer_cast<DetectionModel>(
      make<Model>("{_target_: FCOS, filters: [8, 8, 8], width: 32, num_convs: 1}"));
  const int64_t unit = model->divisor()[0];
  for (const int64_t side : {int64_t{1}, int64_t{2}, int64_t{3}, unit - 1, unit, unit + 1}) {
    const at::Tensor image = at::arange(side).to(at::kFloat).expand({1, 1, side, side});
    const at::Tensor ours = padded(*model, image);
    const int64_t expected = (side + unit - 1) / unit * unit;
    ASSERT_EQ(ours.sizes(), at::IntArrayRef({1, 1, expected, expected}));
    for (int64_t x = 0; x < expected; ++x) {
      const int64_t period = std::max<int64_t>(1, 2 * (side - 1));
      const int64_t place = x % period;
      EXPECT_EQ(ours[0][0][expected - 1][x].item<int64_t>(), std::min(place, period - place))
          << side << " " << x;
    }
  }
}

}  // namespace
}  // namespace cytra::nn
