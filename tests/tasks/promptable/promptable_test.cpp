#include "nn/promptable.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "tasks/promptable/prompts.h"
#include "tests/support/message_of.h"
#include "training/task.h"

namespace cytra {
namespace {

std::shared_ptr<training::Task> promptable_task(const std::string& more = "") {
  return make<training::Task>(
      "{_target_: PromptableTask, max_boxes: 3, min_area: 4, " + more +
      "model: {_target_: Sam, img_size: 32, patch_size: 4, embed_dim: 16, depth: 1, num_heads: 2, "
      "out_chans: 16, window_size: 4, global_attn_indexes: [0], mask_in_chans: 4, "
      "decoder_num_heads: 2, decoder_mlp_dim: 16, iou_head_hidden_dim: 8, dense_boxes: true, "
      "pixel_mean: [], pixel_std: []}}");
}

/// Bright boxes, 5 and 9, and a speck that is too small, in an image of 24 x 48.
data::Sample two_boxes() {
  data::Sample sample;
  sample.id = "raw_1.tif";
  sample.sources["seg"].path = "seg_1.tif";
  at::Tensor labels = at::zeros({1, 24, 48});
  labels.slice(1, 3, 12).slice(2, 6, 18).fill_(5);
  labels.slice(1, 10, 22).slice(2, 27, 36).fill_(9);
  labels.slice(1, 1, 2).slice(2, 40, 42).fill_(11);
  sample.tensors = {{"raw", labels.gt(0).to(at::kFloat) * 100 + at::rand({1, 24, 48})},
                    {"seg", labels}};
  return sample;
}

TEST(PromptableTask, BoxesAreThoseOfTheLabels) {
  data::Sample sample = two_boxes();
  const at::Tensor boxes = tasks::boxes_of_labels(sample.at("seg")[0], 4);
  EXPECT_TRUE(boxes.equal(
      at::tensor({6.0F, 3.0F, 18.0F, 12.0F, 5.0F, 27.0F, 10.0F, 36.0F, 22.0F, 9.0F}).view({2, 5})))
      << boxes;
  EXPECT_EQ(tasks::boxes_of_labels(at::zeros({4, 4}), 1).sizes(), at::IntArrayRef({0, 5}));
}

TEST(PromptableTask, SamplesBecomeSquaresWithBoxesThatMoveALittle) {
  const auto task = promptable_task("box_jitter: 0.1, ");
  data::Sample sample = two_boxes();
  Rng rng(0);
  task->sample_transform()->apply(sample, rng);
  EXPECT_EQ(sample.at("raw").sizes(), at::IntArrayRef({3, 32, 32}));
  EXPECT_EQ(sample.at("seg").sizes(), at::IntArrayRef({1, 32, 32}));
  EXPECT_EQ(sample.at("seg").slice(1, 16).abs().max().item<float>(), 0) << "padding";
  const at::Tensor boxes = sample.at(tasks::kPromptBoxes);
  ASSERT_EQ(boxes.sizes(), at::IntArrayRef({3, 5}));
  const at::Tensor exact = tasks::boxes_of_labels(sample.at("seg")[0], 1);
  std::map<float, int> drawn;
  for (int64_t i = 0; i < 3; ++i) {
    const float number = boxes[i][4].item<float>();
    ++drawn[number];
    const at::Tensor own = exact[number == 5 ? 0 : 1];
    const double moved = (boxes[i] - own).abs().max().item<double>();
    EXPECT_GT(moved, 0);
    EXPECT_LT(moved, 5);
  }
  EXPECT_EQ(drawn.size(), 2) << "each object once before one comes again";
  Rng again(0);
  data::Sample same = two_boxes();
  task->sample_transform()->apply(same, again);
  EXPECT_TRUE(same.at(tasks::kPromptBoxes).equal(boxes));
}

TEST(PromptableTask, WithoutJitterBoxesAreExact) {
  const auto task = promptable_task("box_jitter: 0, ");
  data::Sample sample = two_boxes();
  Rng rng(3);
  task->sample_transform()->apply(sample, rng);
  const at::Tensor exact = tasks::boxes_of_labels(sample.at("seg")[0], 1);
  const at::Tensor boxes = sample.at(tasks::kPromptBoxes);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(boxes[i].equal(exact[boxes[i][4].item<float>() == 5 ? 0 : 1]));
}

data::Batch prompted_batch(std::vector<data::Sample> samples) {
  return data::collate(std::move(samples));
}

TEST(PromptableTask, ImagesWithoutObjectsCountForNothing) {
  const auto task = promptable_task("box_jitter: 0, ");
  const auto prepared = [&](bool is_empty) {
    data::Sample sample = two_boxes();
    if (is_empty) sample.tensors["seg"].zero_();
    at::manual_seed(0);
    sample.tensors["raw"] = at::rand({1, 24, 48});
    Rng rng(0);
    task->sample_transform()->apply(sample, rng);
    return sample;
  };
  const double alone = task->training_step(prompted_batch({prepared(false)})).item<double>();
  const double both =
      task->training_step(prompted_batch({prepared(false), prepared(true)})).item<double>();
  EXPECT_NEAR(both, alone, 1e-4 * alone);
  EXPECT_EQ(task->training_step(prompted_batch({prepared(true)})).item<double>(), 0);
}

TEST(PromptableTask, AValidationWithoutObjectsIsTold) {
  const auto task = promptable_task("");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(std::isnan(task->validation_end().at("mask_iou")));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("is 0 everywhere"), std::string::npos);
}

at::Tensor iou_of(const at::Tensor& a, const at::Tensor& b) {
  return a.logical_and(b).sum().to(at::kDouble) / a.logical_or(b).sum().to(at::kDouble);
}

TEST(PromptableTask, ItsLossIsThatOfTheMasksOfItsBoxes) {
  at::manual_seed(0);
  const auto task = promptable_task("box_jitter: 0, lambda_focal: 0, lambda_iou: 0, ");
  data::Sample sample = two_boxes();
  Rng rng(0);
  task->sample_transform()->apply(sample, rng);
  const data::Batch batch = prompted_batch({sample});
  const at::Tensor loss = task->training_step(batch);
  loss.backward();
  EXPECT_TRUE(task->model().parameters().front().grad().defined());
  auto& model = dynamic_cast<nn::PromptableModel&>(task->model());
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const at::Tensor box = sample.at(tasks::kPromptBoxes)[i];
    const at::Tensor p =
        model.decode(model.encode(sample.at("raw").unsqueeze(0)), {box.slice(0, 0, 4).unsqueeze(0)})
            .logits.sigmoid();
    const at::Tensor truth = sample.at("seg").eq(box[4]).to(at::kFloat);
    ASSERT_EQ(p.size(2), 32) << "4 for each of the 8 tokens";
    const double both = (p * truth).sum().item<double>();
    const double sizes = p.sum().item<double>() + truth.sum().item<double>();
    expected += (1 - (2 * both + 1) / (sizes + 1)) / 3;
  }
  EXPECT_NEAR(loss.item<double>(), expected, 1e-5);
}

TEST(PromptableTask, ValidationComparesMasksOfWholeImages) {
  at::manual_seed(0);
  const auto task = promptable_task();
  const at::NoGradGuard no_grad;
  task->model().eval();
  data::Sample sample = two_boxes();
  Rng rng(0);
  task->validation_transform()->apply(sample, rng);
  EXPECT_EQ(sample.at("seg").sizes(), at::IntArrayRef({1, 24, 48})) << "of the whole image";
  const data::Batch batch = prompted_batch({sample});
  task->validation_step(batch);
  EXPECT_EQ(task->sums().front()[0].item<double>(), 2) << "objects, without the speck";
  const training::Metrics metrics = task->validation_end();

  auto& model = dynamic_cast<nn::PromptableModel&>(task->model());
  const nn::Placement placement = nn::place_in_square(24, 48, 32);
  const at::Tensor boxes = tasks::boxes_of_labels(sample.at("seg")[0], 4);
  const at::Tensor logits =
      model
          .decode(model.encode(sample.at("raw").unsqueeze(0)).expand({2, -1, -1, -1}),
                  {placement.boxes(boxes.slice(1, 0, 4))})
          .logits.squeeze(1);
  const at::Tensor masks = nn::upscale_masks(logits, placement, 32).gt(0);
  const double expected =
      (iou_of(masks[0], sample.at("seg")[0].eq(5)) + iou_of(masks[1], sample.at("seg")[0].eq(9)))
          .item<double>() /
      2;
  EXPECT_GT(expected, 0) << "a mask that is somewhere near";
  EXPECT_NEAR(metrics.at("mask_iou"), expected, 1e-3);
  EXPECT_NEAR(metrics.at("box_iou"), 1, 1e-6) << "the objects are boxes";
  EXPECT_TRUE(std::isfinite(metrics.at("loss")));
  EXPECT_TRUE(std::isnan(task->validation_end().at("mask_iou"))) << "begins afresh";
  EXPECT_EQ(task->preview(batch).at("prediction").sizes(), at::IntArrayRef({1, 32, 32}));
}

TEST(PromptableTask, ModelsWithoutPromptsAndWrongLabelsAreRefused) {
  EXPECT_NE(message_of<ConfigError>([] {
              make<training::Task>(
                  "{_target_: PromptableTask, model: {_target_: UNet, spatial_dims: 2, "
                  "in_channels: 1, out_channels: 1, channels: [4, 8], strides: [2]}}");
            }).find("task.model: takes no prompts"),
            std::string::npos);
  const auto task = promptable_task();
  data::Sample sample = two_boxes();
  sample.tensors["seg"].add_(0.5);
  Rng rng(0);
  EXPECT_NE(message_of<DataError>([&] {
              task->sample_transform()->apply(sample, rng);
            }).find("seg_1.tif: labels with fractions"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
