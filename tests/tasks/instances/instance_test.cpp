#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "inference/decoders/decoder.h"
#include "inference/postprocess/postprocess.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "tasks/instances/targets.h"
#include "tests/support/message_of.h"
#include "training/task.h"

namespace cytra {
namespace {

std::shared_ptr<training::Task> make_instances(const std::string& method,
                                               int64_t channels,
                                               int64_t dims = 2,
                                               const std::string& more = "") {
  return make<training::Task>(
      "{_target_: InstanceTask, method: " + method +
      ", decoder: {_target_: InstanceDecoder, method: " + method +
      "}, inference_args: {roi_size: 16}, " + more + "model: {_target_: DynUNet, spatial_dims: " +
      std::to_string(dims) + ", in_channels: 1, out_channels: " + std::to_string(channels) +
      ", kernel_size: [3, 3], strides: [1, 2], upsample_kernel_size: [2], filters: [2, 4]}}");
}

/// Two boxes that touch.
at::Tensor two_objects(int64_t dims) {
  at::Tensor labels =
      at::zeros(dims == 2 ? std::vector<int64_t>{1, 16, 16} : std::vector<int64_t>{1, 8, 16, 16});
  const auto box = [&](int64_t first, double value) {
    at::Tensor part = labels.slice(-2, 3, 13).slice(-1, first, first + 6);
    (dims == 2 ? part : part.slice(1, 1, 7)).fill_(value);
  };
  box(2, 7);
  box(8, 4);
  return labels;
}

data::Sample labelled(const at::Tensor& labels) {
  data::Sample sample;
  sample.id = "raw_1.tif";
  sample.sources["seg"].path = "seg_1.tif";
  sample.tensors = {{"raw", at::rand(labels.sizes())}, {"seg", labels}};
  return sample;
}

TEST(InstanceTask, NumbersThatFloatsDoNotHoldStayApart) {
  const auto task = make_instances("flows", 3);
  data::Sample sample = labelled(at::zeros({1, 16, 16}));
  at::Tensor labels = at::zeros({1, 16, 16}, at::kInt);
  labels.slice(1, 2, 6).fill_(20000000);
  labels.slice(1, 6, 12).fill_(20000001);  // the same number in float32
  sample.tensors["seg"] = labels;
  Rng rng(0);
  task->validation_transform()->apply(sample, rng);
  EXPECT_EQ(sample.at("seg").max().item<float>(), 2);
}

TEST(InstanceTask, NegativeLabelsAreRefused) {
  const auto task = make_instances("flows", 3);
  data::Sample sample = labelled(two_objects(2) - 1);
  Rng rng(0);
  EXPECT_NE(message_of<DataError>([&] {
              task->validation_transform()->apply(sample, rng);
            }).find("seg_1.tif: negative labels"),
            std::string::npos);
}

TEST(InstanceTask, TargetsOnAGridAreThoseOfItsVoxels) {
  const at::Tensor labels = two_objects(2).unsqueeze(0);
  tasks::InstanceTargets all{"stars", 2, ops::make_rays(8, 2)}, coarse = all;
  coarse.grid = {2, 4};
  const at::Tensor expected = all.of(labels).slice(1, 1).slice(2, 0, {}, 2).slice(3, 0, {}, 4);
  const at::Tensor stars = coarse.of(labels);
  ASSERT_EQ(stars.sizes().vec(), (std::vector<int64_t>{1, 9, 16, 16}));
  for (const int64_t y : {0, 1})
    for (const int64_t x : {0, 3})
      EXPECT_TRUE(at::equal(stars.slice(1, 1).slice(2, y, {}, 2).slice(3, x, {}, 4), expected));
  EXPECT_TRUE(at::equal(stars[0][0].slice(0, 0, {}, 2).slice(1, 0, {}, 4),
                        ops::edt_probability(labels[0][0].slice(0, 0, {}, 2).slice(1, 0, {}, 4))));
}

TEST(InstanceTask, TargetsBecomeTheLabelsTheyAreOf) {
  for (const std::string method : {"flows", "stars"}) {
    for (const int64_t dims : {2, 3}) {
      const int64_t channels = method == "flows" ? dims + 1 : 33;
      const auto task = make_instances(method, channels, dims);
      Rng rng(0);
      data::Sample sample = labelled(two_objects(dims));
      task->sample_transform()->apply(sample, rng);
      at::Tensor target = sample.at("seg");
      ASSERT_EQ(target.size(0), channels) << method;
      at::Tensor output = target.clone();
      if (method == "flows") output.mul_(5).select(0, dims).sub_(2);
      if (method == "stars") output.select(0, 0).mul_(6).sub_(3);
      const auto decoder =
          make<inference::Decoder>("{_target_: InstanceDecoder, method: " + method + "}");
      inference::Result result{output, false, {}};
      inference::apply_all(decoder->steps("labels"), result);
      const at::Tensor labels = two_objects(dims);
      EXPECT_TRUE(result.is_labels);
      EXPECT_EQ(result.values.max().item<int64_t>(), 2) << method << dims;
      const double same = result.values.eq(result.values.select(-1, 4).max())
                              .eq(labels.eq(7))
                              .to(at::kDouble)
                              .mean()
                              .item<double>();
      EXPECT_GT(same, method == "flows" ? 0.999 : 0.95) << method << dims;
    }
  }
}

TEST(InstanceTask, LearnsAndTellsTheLossOfWholeImages) {
  for (const std::string method : {"flows", "stars"}) {
    const auto task = make_instances(method, method == "flows" ? 3 : 9);
    Rng rng(0);
    data::Sample sample = labelled(two_objects(2));
    data::Batch whole;
    whole.tensors = {{"raw", sample.at("raw").unsqueeze(0)},
                     {"seg", sample.at("seg").unsqueeze(0)}};
    task->sample_transform()->apply(sample, rng);
    data::Batch batch;
    batch.tensors = {{"raw", sample.at("raw").unsqueeze(0)},
                     {"seg", sample.at("seg").unsqueeze(0)}};
    const at::Tensor loss = task->training_step(batch);
    loss.backward();
    EXPECT_TRUE(std::isfinite(loss.item<double>()));
    const at::NoGradGuard no_grad;
    task->model().eval();
    task->validation_step(whole);
    EXPECT_GT(task->validation_end().at("loss"), 0);
    EXPECT_EQ(task->preview(whole).at("prediction").sizes(), at::IntArrayRef({1, 16, 16}));
  }
}

TEST(InstanceHead, IsOneOfSeveral) {
  const std::string model =
      "{_target_: MultiHead, backbone: {_target_: DynUNet, spatial_dims: 2, in_channels: 1, "
      "out_channels: 4, kernel_size: [3, 3], strides: [1, 2], upsample_kernel_size: [2], filters: "
      "[2, 4]}, heads: {mask: {_target_: ResBlocksHead, out_channels: 1}, cells: {_target_: "
      "ResBlocksHead, out_channels: ";
  const auto two_heads = [&](int64_t channels) {
    return make<training::Task>(
        "{_target_: MultiTask, inference_args: {roi_size: 16}, model: " + model +
        std::to_string(channels) +
        "}}}, heads: {mask: {_target_: SegmentationHead, y_key: mask, loss: {_target_: "
        "DiceCELoss}}, cells: {_target_: InstanceHead, metrics: {ap: {_target_: "
        "AveragePrecision}}, decoder: {_target_: InstanceDecoder}}}}");
  };
  EXPECT_NE(message_of<ConfigError>([&] { two_heads(1); }).find("takes 3"), std::string::npos);
  const auto task = two_heads(3);
  Rng rng(0);
  const auto batch_for = [&](data::Transform& last) {
    data::Sample sample = labelled(two_objects(2));
    sample.tensors["mask"] = two_objects(2);
    last.apply(sample, rng);
    data::Batch batch;
    for (const auto& [key, tensor] : sample.tensors) batch.tensors[key] = tensor.unsqueeze(0);
    batch.geometries.resize(1);
    return batch;
  };
  const data::Batch batch = batch_for(*task->sample_transform());
  EXPECT_EQ(batch.at("seg").sizes(), at::IntArrayRef({1, 3, 16, 16}));
  EXPECT_EQ(batch.at("mask").max().item<double>(), 1);
  task->training_step(batch).backward();
  const at::NoGradGuard no_grad;
  task->model().eval();
  const data::Batch whole = batch_for(*task->validation_transform());
  EXPECT_EQ(whole.at("seg").max().item<double>(), 7);
  task->validation_step(whole);
  const training::Metrics metrics = task->validation_end();
  EXPECT_NEAR(metrics.at("loss"), metrics.at("loss/mask") + metrics.at("loss/cells"), 1e-6);
  EXPECT_EQ(metrics.count("ap50/cells") + metrics.count("dice/mask"), 2U);
  EXPECT_EQ(task->preview(whole).at("cells prediction").sizes(), at::IntArrayRef({1, 16, 16}));
}

TEST(InstanceTask, UnknownVoxelsDoNotCount) {
  tasks::InstanceTargets targets;
  targets.ignore_index = 4;
  const at::Tensor labels = two_objects(2).unsqueeze(0);
  const at::Tensor target = targets.of(labels);
  const at::Tensor unknown = labels.eq(4).expand_as(target);
  const auto loss = make<nn::Loss>("_target_: CellposeLoss");
  const at::Tensor output = at::randn(target.sizes());
  const double plain = (*loss)(output, target).item<double>();
  EXPECT_EQ(plain, (*loss)(output.masked_fill(unknown, 9), target).item<double>());
  const auto stars = make<nn::Loss>("_target_: StarDistLoss");
  targets.method = "stars";
  targets.rays = ops::make_rays(2, 2);
  const at::Tensor distances = targets.of(labels);
  EXPECT_NEAR((*stars)(output, distances).item<double>(),
              (*stars)(output.masked_fill(unknown, 9), distances).item<double>(),
              1e-6);
}

/// As cellpose/train.py and stardist/models/base.py have them.
TEST(InstanceTask, LossesAreThePeers) {
  const at::Tensor flows = at::randn({2, 2, 6, 7}),
                   object = at::rand({2, 1, 6, 7}).gt(0.5).to(at::kFloat);
  const at::Tensor output = at::randn({2, 3, 6, 7});
  const double expected = (at::mse_loss(output.narrow(1, 0, 2), 5 * flows) / 2 +
                           at::binary_cross_entropy_with_logits(output.narrow(1, 2, 1), object))
                              .item<double>();
  EXPECT_NEAR((*make<nn::Loss>("_target_: CellposeLoss"))(output, at::cat({flows, object}, 1))
                  .item<double>(),
              expected,
              1e-5);
  const at::Tensor probability = at::rand({2, 1, 6, 7}), distances = 9 * at::rand({2, 2, 6, 7});
  const at::Tensor guess = output.narrow(1, 1, 2);
  const at::Tensor error =
      (probability * (distances - guess).abs()).mean() / (probability.mean() + 1e-7);
  const at::Tensor idle = ((1 - probability) * guess.abs()).mean();
  EXPECT_NEAR(
      (*make<nn::Loss>("_target_: StarDistLoss"))(output, at::cat({probability, distances}, 1))
          .item<double>(),
      (at::binary_cross_entropy_with_logits(output.narrow(1, 0, 1), probability) +
       0.2 * (error + 1e-4 * idle))
          .item<double>(),
      1e-5);
}

TEST(InstanceTask, SaysWhatDoesNotFit) {
  EXPECT_NE(message_of<ConfigError>([] { make_instances("flows", 1); }).find("takes 3"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { make_instances("stars", 3); }).find("usually 33"),
            std::string::npos);
  const std::string masks = "metrics: {dice: {_target_: DiceMetric}}, ";
  EXPECT_NE(message_of<ConfigError>([&] {
              make_instances("flows", 3, 2, masks);
            }).find("AveragePrecision"),
            std::string::npos);
  const auto task = make_instances("flows", 3);
  Rng rng(0);
  data::Sample sample = labelled(at::full({1, 8, 8}, 0.5));
  const std::string message =
      message_of<DataError>([&] { task->validation_transform()->apply(sample, rng); });
  EXPECT_EQ(message.rfind("seg_1.tif: labels with fractions", 0), 0U) << message;
}

TEST(InstanceTask, WhatIsNoObjectStaysWhereNumbersAreLarge) {
  const int64_t large = (1 << 24) + 5;
  const auto prepared = [&](std::vector<int64_t> values, const std::string& more) {
    values.resize(256, 0);
    data::Sample sample = labelled(at::tensor(values, at::kLong).view({1, 16, 16}));
    Rng rng(0);
    make_instances("stars", 33, 2, more)->validation_transform()->apply(sample, rng);
    const at::Tensor made = sample.at("seg").flatten().to(at::kLong).contiguous();
    return std::vector<int64_t>(made.const_data_ptr<int64_t>(), made.const_data_ptr<int64_t>() + 5);
  };
  EXPECT_EQ(prepared({-1, 0, 5, large, large + 1}, "ignore_index: -1, "),
            (std::vector<int64_t>{-1, 0, 1, 2, 3}));
  EXPECT_EQ(prepared({255, 0, 5, large, large + 1}, "ignore_index: 255, "),
            (std::vector<int64_t>{255, 0, 1, 2, 3}));
  EXPECT_EQ(prepared({2, 0, 5, large, large + 1}, "ignore_index: 2, "),
            (std::vector<int64_t>{2, 0, 1, 3, 4}))
      << "no object gets the number that does not count";
  const std::string refused = message_of<DataError>([&] { prepared({-1, 0, 5, large}, ""); });
  for (const char* part : {"negative labels", "task.background=-1"})
    EXPECT_NE(refused.find(part), std::string::npos) << refused;
}

}  // namespace
}  // namespace cytra
