#include "ops/boxes/boxes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace cytra::ops {
namespace {

TEST(Nms, EqualsTorchvision) {
  const test::Golden golden("detection");
  const auto& pairs = golden.at("iou");
  EXPECT_LT(test::max_difference(box_iou(pairs.tensor("boxes"), pairs.tensor("others")),
                                 pairs.tensor("iou")),
            1e-6);
  for (const char* name : {"nms.0.2", "nms.0.5"}) {
    const auto& entry = golden.at(name);
    const at::Tensor kept = nms(entry.tensor("boxes"),
                                entry.tensor("scores"),
                                entry.tensor("labels"),
                                entry.options().get<double>("threshold"));
    EXPECT_TRUE(at::equal(kept, entry.tensor("kept"))) << name << kept << entry.tensor("kept");
  }
}

TEST(Boxes, OfVolumesOverlapAndStayAsMonaisDo) {
  const test::Golden golden("boxes_3d");
  const auto& pairs = golden.at("iou");
  const at::Tensor iou = box_iou(pairs.tensor("boxes"), pairs.tensor("others"));
  EXPECT_LT(test::max_difference(iou, pairs.tensor("iou")), 1e-6);
  EXPECT_GT(iou.max().item<float>(), 0.3);
  for (const char* name : {"nms.0.02", "nms.0.1"}) {
    const auto& entry = golden.at(name);
    const at::Tensor kept = nms(entry.tensor("boxes"),
                                entry.tensor("scores"),
                                entry.tensor("labels"),
                                entry.options().get<double>("threshold"));
    EXPECT_TRUE(at::equal(kept, entry.tensor("kept"))) << name << kept << entry.tensor("kept");
    EXPECT_LT(kept.size(0), entry.tensor("boxes").size(0)) << name;
  }
  const auto& clipped = golden.at("clip");  // an image of (D,H,W) = (20,30,40)
  EXPECT_TRUE(at::equal(clip_boxes(pairs.tensor("boxes"), {20, 30, 40}), clipped.tensor("boxes")));
}

/// Axes of images are Z, Y, X, columns of corners X, Y, Z.
TEST(Boxes, MoveAndGrowAlongTheAxesOfTheImage) {
  const at::Tensor plane = at::tensor({1., 2., 3., 4.}, at::kFloat).view({1, 4}),
                   volume = at::tensor({1., 2., 3., 4., 5., 6.}, at::kFloat).view({1, 6});
  const auto is = [](const at::Tensor& corners, const std::vector<double>& expected) {
    return at::equal(corners[0], at::tensor(expected, at::kFloat));
  };
  EXPECT_TRUE(is(shift_boxes(plane, {10, 20}), {21, 12, 23, 14}));
  EXPECT_TRUE(is(shift_boxes(volume, {10, 20, 30}), {31, 22, 13, 34, 25, 16}));
  EXPECT_TRUE(is(scale_boxes(plane, {10, 100}), {100, 20, 300, 40}));
  EXPECT_TRUE(is(clip_boxes(plane, {3, 2}), {1, 2, 2, 3}));
  EXPECT_EQ(box_sides(volume).sizes(), at::IntArrayRef({1, 3}));
  EXPECT_EQ(box_volumes(volume)[0].item<float>(), 27);
}

TEST(Nms, NothingStaysNothing) {
  const at::Tensor none = at::zeros({0, 4});
  EXPECT_EQ(nms(none, at::zeros({0}), at::zeros({0}, at::kLong), 0.5).numel(), 0);
  EXPECT_EQ(box_iou(at::zeros({1, 4}), at::zeros({2, 4})).sum().item<float>(), 0);
}

}  // namespace
}  // namespace cytra::ops
