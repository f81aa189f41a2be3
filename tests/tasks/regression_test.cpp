#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "inference/decoders/decoder.h"
#include "nn/model.h"
#include "tasks/image_task.h"
#include "tests/support/message_of.h"
#include "training/task.h"

namespace cytra {
namespace {

std::shared_ptr<tasks::ImageTask> regression(const std::string& options = "") {
  return std::dynamic_pointer_cast<tasks::ImageTask>(make<training::Task>(
      "{_target_: LabelfreeTask, y_key: stain, loss: {_target_: MSELoss}, inference_args: "
      "{roi_size: [8, 8]}, model: {_target_: AffineModel}" +
      options + "}"));
}

data::Batch stained(const at::Tensor& raw, const at::Tensor& stain) {
  data::Batch batch;
  batch.tensors = {{"raw", raw}, {"stain", stain}};
  batch.geometries.resize(static_cast<std::size_t>(raw.size(0)));
  return batch;
}

tasks::EachBatch each_of(const std::vector<data::Batch>& batches) {
  return [batches](const std::function<void(const data::Batch&)>& look) {
    for (const data::Batch& batch : batches) look(batch);
  };
}

TEST(RegressionTask, LearnsTheTargetNormalisedAndTellsItsUnits) {
  at::manual_seed(0);
  const at::Tensor raw = at::rand({2, 1, 8, 8}), stain = 300 + 50 * at::rand({2, 1, 8, 8});
  const auto task = regression(", metrics: {mae: {_target_: MAEMetric}}");
  const config::Node kept =
      task->fit_decoders(each_of({stained(raw, stain), stained(raw, stain)})).at("");
  const double mean = stain.mean().item<double>();
  const double deviation = stain.std(/*unbiased=*/false).item<double>();
  const auto numbers = kept.get<std::vector<double>>("mean");
  ASSERT_EQ(numbers.size(), 1U);
  EXPECT_NEAR(numbers[0], mean, 1e-3);
  EXPECT_NEAR(kept.get<std::vector<double>>("std")[0], deviation, 1e-3);

  const at::Tensor output = raw + 0.25, normal = (stain - mean) / deviation;
  const data::Batch batch = stained(raw, stain);
  EXPECT_NEAR(
      task->training_step(batch).item<double>(), at::mse_loss(output, normal).item<double>(), 1e-5);
  task->model().eval();
  task->validation_step(batch);
  const training::Metrics metrics = task->validation_end();
  EXPECT_NEAR(metrics.at("loss"), at::mse_loss(output, normal).item<double>(), 1e-5);
  EXPECT_NEAR(
      metrics.at("mae"), at::l1_loss(output * deviation + mean, stain).item<double>(), 1e-2);
  const auto preview = task->preview(batch);
  EXPECT_TRUE(preview.at("target").equal(stain[0]));
  EXPECT_TRUE(preview.at("prediction").allclose((output * deviation + mean)[0], 1e-5));
  const auto decoder = make<inference::Decoder>(kept);  // what `predict` makes of the checkpoint
  EXPECT_TRUE(decoder->decode(output, "value").allclose(output * deviation + mean, 1e-5));
}

TEST(RegressionTask, LeavesTheTargetAsItIs) {
  const at::Tensor raw = at::rand({1, 1, 8, 8}), stain = 300 * at::rand({1, 1, 8, 8});
  const auto task = regression(", normalize_target: false");
  EXPECT_TRUE(task->fit_decoders(each_of({})).at("").has("_target_"));
  EXPECT_NEAR(task->training_step(stained(raw, stain)).item<double>(),
              at::mse_loss(raw + 0.25, stain).item<double>(),
              1e-2);
}

TEST(RegressionTask, OnlyVoxelsOfTheMaskCount) {
  const at::Tensor raw = at::rand({1, 1, 8, 8}), mask = at::rand({1, 1, 8, 8}).gt(0.5);
  const at::Tensor stain = at::rand({1, 1, 8, 8});
  data::Batch batch = stained(raw, at::where(mask, stain, 1e4)), other = stained(raw, stain);
  batch.tensors["good"] = other.tensors["good"] = mask.to(at::kFloat);
  const auto task = regression(", mask_key: good"), same = regression(", mask_key: good");
  const config::Node one = task->fit_decoders(each_of({batch})).at(""),
                     two = same->fit_decoders(each_of({other})).at("");
  EXPECT_NEAR(one.get<std::vector<double>>("mean")[0],
              stain.masked_select(mask).mean().item<double>(),
              1e-5);
  EXPECT_NEAR(
      task->training_step(batch).item<double>(), same->training_step(other).item<double>(), 1e-5);
  EXPECT_EQ(config::to_json(one), config::to_json(two));
}

TEST(RegressionTask, RefusesTargetsThatDoNotFit) {
  const auto last = regression()->sample_transform();
  Rng rng(0);
  data::Sample sample;
  sample.id = "raw_1.tif";
  sample.sources["stain"].path = "stain_1.tif";
  sample.tensors = {{"raw", at::rand({1, 8, 8})}, {"stain", at::rand({2, 8, 8})}};
  const auto message = [&] { return message_of<DataError>([&] { last->apply(sample, rng); }); };
  EXPECT_EQ(message().rfind("stain_1.tif: a target of (2,8,8), expected (1,8,8)", 0), 0U)
      << message();
  sample.tensors["stain"] = at::full({1, 8, 8}, NAN);
  EXPECT_NE(message().find("NaN"), std::string::npos) << message();
  EXPECT_NE(message_of<ConfigError>([] {
              regression(", metrics: {d: {_target_: DiceMetric}}");
            }).find("MAEMetric"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
