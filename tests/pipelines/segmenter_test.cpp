#include "pipelines/segmenter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/pipelines/fake_segmenter.h"

namespace cytra {
namespace {

TEST(PromptedSegmenter, AMaskComesBackWhereTheBoxWas) {
  test::FakeSegmenter segmenter(64);
  at::Tensor image = at::zeros({1, 60, 120}, at::kByte);
  image.slice(1, 20, 40).slice(2, 60, 100).fill_(200);
  const nn::SquareImage prepared = segmenter.prepare(image);
  EXPECT_EQ(prepared.image.sizes(), at::IntArrayRef({3, 64, 64}));
  const at::Tensor box = at::tensor({50.0F, 10.0F, 110.0F, 50.0F}).unsqueeze(0);
  const at::Tensor logits =
      segmenter.masks(segmenter.encode(prepared.image.unsqueeze(0)), prepared.placement.boxes(box));
  const at::Tensor mask = segmenter.upscale(logits, prepared.placement).gt(0)[0];
  ASSERT_EQ(mask.sizes(), at::IntArrayRef({60, 120}));
  const at::Tensor truth = image[0].gt(0);
  const double both = mask.logical_and(truth).sum().item<double>();
  // A pixel of the fake's masks is four of the image: so much is lost along the object's border.
  EXPECT_GT(both / mask.logical_or(truth).sum().item<double>(), 0.65);
  EXPECT_EQ(mask.slice(0, 0, 8).sum().item<int64_t>() + mask.slice(1, 0, 48).sum().item<int64_t>(),
            0);
}

}  // namespace
}  // namespace cytra
