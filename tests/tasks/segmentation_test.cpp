#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "tests/support/message_of.h"
#include "training/task.h"

namespace cytra {
namespace {

const std::string kModel =
    "model: {_target_: DynUNet, spatial_dims: 2, in_channels: 1, out_channels: 3, "
    "kernel_size: [3, 3], strides: [1, 2], upsample_kernel_size: [2], filters: [2, 4]}";

std::shared_ptr<training::Task> make_task(const std::string& options,
                                          const std::string& loss = "_target_: DiceCELoss") {
  return make<training::Task>("{_target_: SegmentationTask, " + options + ", loss: {" + loss +
                              "}, inference_args: {roi_size: [8, 8]}, " + kModel + "}");
}

data::Sample sample_of(const at::Tensor& target) {
  data::Sample sample;
  sample.id = "raw_1.tif";
  sample.sources["seg"].path = "seg_1.tif";
  sample.tensors = {{"raw", at::rand({1, 8, 8})}, {"seg", target}};
  return sample;
}

data::Batch batch_of(const at::Tensor& target) {
  data::Batch batch;
  batch.tensors = {{"raw", at::rand({target.size(0), 1, 8, 8})}, {"seg", target}};
  return batch;
}

void expect_refused(const std::string& options,
                    const std::string& loss,
                    const std::vector<std::string>& parts) {
  const std::string message = message_of<ConfigError>([&] { make_task(options, loss); });
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
}

/// The loss that the task makes of a batch, and the one given, on the same weights.
TEST(SegmentationTask, TheLossFollowsTheClasses) {
  const at::Tensor classes = at::arange(64).remainder(3).to(at::kFloat).view({1, 1, 8, 8});
  const at::Tensor masks = at::rand({1, 3, 8, 8}).gt(0.5).to(at::kFloat);
  const auto value = [](const std::string& options, const std::string& loss, const data::Batch& b) {
    at::manual_seed(0);
    return make_task(options, loss)->training_step(b).item<double>();
  };
  const data::Batch of_classes = batch_of(classes), of_masks = batch_of(masks);
  const std::string plain = "_target_: DiceCELoss", softmax = ", softmax: true, to_onehot_y: true";
  EXPECT_EQ(value("num_classes: 3", plain, of_classes),
            value("num_classes: 3", plain + softmax, of_classes));
  EXPECT_EQ(value("num_classes: null", plain, of_classes),
            value("num_classes: 3", plain + ", softmax: null", of_classes));
  const double overlapping = value("num_classes: 3, multilabel: true", plain, of_masks);
  EXPECT_EQ(overlapping,
            value("num_classes: 3, multilabel: true",
                  plain + ", sigmoid: true, multilabel: true, to_onehot_y: false",
                  of_masks));
  EXPECT_GT(overlapping, 0);
}

TEST(SegmentationTask, RefusesALossThatDoesNotFitTheClasses) {
  const std::string loss = "_target_: DiceCELoss";
  expect_refused("num_classes: 3", loss + ", sigmoid: true", {"sigmoid", "num_classes=3", "false"});
  expect_refused("num_classes: 3", loss + ", softmax: false", {"softmax", "expected true"});
  expect_refused("num_classes: 3", loss + ", to_onehot_y: false", {"to_onehot_y"});
  expect_refused("num_classes: 3, multilabel: true", loss + ", softmax: true", {"3 masks"});
  expect_refused("num_classes: 1", loss, {"out_channels=3", "num_classes=3", "multilabel=true"});
}

TEST(SegmentationTask, NestedLossesFollowTheClasses) {
  const std::string nested =
      "_target_: WeightedLoss, losses: {a: {_target_: DiceLoss}, b: {_target_: FocalLoss}}";
  const data::Batch batch = batch_of(at::arange(64).remainder(3).to(at::kFloat).view({1, 1, 8, 8}));
  const auto value = [&](const std::string& loss) {
    at::manual_seed(0);
    return make_task("num_classes: 3", loss)->training_step(batch).item<double>();
  };
  const std::string softmax = ", softmax: true, to_onehot_y: true";
  const std::string focal = "_target_: FocalLoss, to_onehot_y: true";
  EXPECT_NEAR(value(nested), value("_target_: DiceLoss" + softmax) + value(focal), 1e-6);
  expect_refused("num_classes: 3",
                 "_target_: DeepSupervisionLoss, loss: {_target_: DiceLoss, sigmoid: true}",
                 {"sigmoid", "num_classes=3"});
}

TEST(SegmentationTask, DeepSupervisionHalvesItsWeights) {
  const auto task = make<training::Task>(
      "{_target_: SegmentationTask, loss: {_target_: DiceCELoss}, inference_args: {roi_size: [8, "
      "8]}, model: {_target_: AffineModel, levels: 3}}");
  at::manual_seed(0);
  const data::Batch batch = batch_of(at::rand({2, 1, 8, 8}).gt(0.5).to(at::kFloat));
  const auto loss = make<nn::Loss>("{_target_: DiceCELoss, sigmoid: true}");
  const std::vector<at::Tensor> outputs = task->model().all(batch.at("raw"));
  ASSERT_EQ(outputs.size(), 3U);
  const at::Tensor& target = batch.at("seg");
  const at::Tensor half = target.slice(2, 1, 8, 2).slice(3, 1, 8, 2);
  EXPECT_NEAR(task->training_step(batch).item<double>(),
              ((*loss)(outputs[0], target).item<double>() +
               0.5 * (*loss)(outputs[1], half).item<double>()) /
                  1.5,
              1e-6);
  task->model().eval();
  const at::NoGradGuard no_grad;
  task->validation_step(batch);
  EXPECT_NEAR(task->validation_end().at("loss"), (*loss)(outputs[0], target).item<double>(), 1e-6);
}

TEST(SegmentationTask, WhatIsIgnoredIsNeitherLearnedNorScored) {
  const std::string scribbles =
      "{_target_: SegmentationTask, ignore_index: 0, target_values: [1, 2], loss: {_target_: "
      "DiceCELoss}, inference_args: {roi_size: [8, 8]}, model: {_target_: AffineModel}}";
  const auto task = make<training::Task>(scribbles);
  at::manual_seed(0);
  data::Sample sample = sample_of(at::randint(0, 3, {1, 8, 8}).to(at::kFloat));
  const at::Tensor raw = sample.at("raw") - 0.5, labels = sample.at("seg").clone();
  Rng rng(0);
  task->sample_transform()->apply(sample, rng);
  data::Batch batch = batch_of(sample.at("seg").unsqueeze(0)), other = batch;
  batch.tensors["raw"] = raw.unsqueeze(0);
  other.tensors["raw"] = at::where(labels.eq(0), raw + 3, raw).unsqueeze(0);  // where none is known
  EXPECT_EQ(task->training_step(batch).item<double>(), task->training_step(other).item<double>());
  const at::NoGradGuard no_grad;
  task->model().eval();
  task->validation_step(other);
  const at::Tensor guess = raw.gt(-0.25), truth = labels.eq(2), known = labels.ne(0);
  EXPECT_NEAR(task->validation_end().at("dice"),
              2.0 * (guess * truth).sum().item<double>() /
                  ((guess * known).sum() + truth.sum()).item<double>(),
              1e-6);
  expect_refused("num_classes: 3", "_target_: DiceCELoss, ignore_index: 0", {"task.ignore_index"});
}

TEST(SegmentationTask, TellsWhichMetricsItTakes) {
  expect_refused("num_classes: 3, metrics: {p: {_target_: PearsonCorrCoef}}",
                 "_target_: DiceCELoss",
                 {"PearsonCorrCoef", "DiceMetric", "MeanIoU"});
}

TEST(SegmentationTask, SumsOfTwoProcessesAreThoseOfOne) {
  const at::NoGradGuard no_grad;
  at::manual_seed(0);
  const auto make_one = [] {
    at::manual_seed(1);
    auto task = make_task(
        "num_classes: 3, metrics: {d: {_target_: DiceMetric}, i: {_target_: "
        "MeanIoU, ignore_empty: false}}");
    task->model().eval();
    return task;
  };
  const auto whole = make_one(), first = make_one(), second = make_one();
  for (int i = 0; i < 3; ++i) {
    const data::Batch batch = batch_of(at::randint(0, 3, {1, 1, 8, 8}).to(at::kFloat));
    whole->validation_step(batch);
    (i < 2 ? first : second)->validation_step(batch);
  }
  const auto sums = first->sums(), others = second->sums();
  ASSERT_EQ(sums.size(), others.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add_(others[i]);
  const training::Metrics expected = whole->validation_end(), summed = first->validation_end();
  ASSERT_EQ(expected.size(), 7U);
  for (const auto& [name, value] : expected) EXPECT_NEAR(summed.at(name), value, 1e-9) << name;
}

TEST(SegmentationTask, ChecksSamplesInTheLoader) {
  const auto task = make_task("num_classes: 3");
  const auto last = task->sample_transform();
  Rng rng(0);
  data::Sample good = sample_of(at::full({1, 8, 8}, 2));
  last->apply(good, rng);
  EXPECT_EQ(good.at("seg").max().item<double>(), 2);
  const auto message = [&](data::Sample sample) {
    return message_of<DataError>([&] { last->apply(sample, rng); });
  };
  EXPECT_EQ(message(sample_of(at::full({1, 8, 8}, 3))).rfind("seg_1.tif: ", 0), 0U);
  data::Sample wide = sample_of(at::zeros({1, 8, 8}));
  wide.tensors["raw"] = at::zeros({2, 8, 8});
  EXPECT_NE(message(wide).find("raw_1.tif: 2 channels"), std::string::npos) << message(wide);
  EXPECT_NE(message(sample_of(at::zeros({1, 4, 8}))).find("(4,8)"), std::string::npos);
}

TEST(SegmentationTask, SaysOnceThatInstancesAreOneMask) {
  const auto task = make<training::Task>(
      "{_target_: SegmentationTask, loss: {_target_: DiceCELoss}, model: {_target_: DynUNet, "
      "spatial_dims: 2, in_channels: 1, out_channels: 1, kernel_size: [3, 3], strides: [1, 2], "
      "upsample_kernel_size: [2], filters: [2, 4]}}");
  const auto last = task->sample_transform();
  Rng rng(0);
  const auto said = [&](const at::Tensor& target) {
    data::Sample sample = sample_of(target);
    testing::internal::CaptureStderr();
    last->apply(sample, rng);
    EXPECT_LE(sample.at("seg").max().item<double>(), 1);
    return testing::internal::GetCapturedStderr();
  };
  at::Tensor target = at::zeros({1, 8, 8});
  target[0][1].fill_(255);
  EXPECT_EQ(said(target), "");
  target[0][2].fill_(3);
  const std::string line = said(target);
  EXPECT_NE(line.find("up to 255"), std::string::npos) << line;
  EXPECT_EQ(said(target), "");
}

TEST(SegmentationTask, RefusesMixedClassNumbers) {
  const auto task = make_task("num_classes: 3");
  const std::string message = message_of<DataError>([&] {
    task->check_batch(batch_of(at::full({1, 1, 8, 8}, 0.5)));
  });
  EXPECT_NE(message.find("MixUpd"), std::string::npos) << message;
}

TEST(SegmentationTask, ValidationTellsEachClass) {
  const auto task = make_task("num_classes: 3");
  const at::NoGradGuard no_grad;
  const at::Tensor target = at::arange(64).remainder(2).to(at::kFloat).view({1, 1, 8, 8});
  task->validation_step(batch_of(target));
  testing::internal::CaptureStderr();
  const training::Metrics metrics = task->validation_end();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(metrics.size(), 4U);  // loss, dice, dice_class_1, dice_class_2
  EXPECT_EQ(metrics.at("dice"), metrics.at("dice_class_1"));
  EXPECT_TRUE(std::isnan(metrics.at("dice_class_2")));
  EXPECT_NE(said.find("no target of 1 images has class 2"), std::string::npos) << said;
}

}  // namespace
}  // namespace cytra
