#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "inference/decoders/decoder.h"
#include "inference/models/trained_head.h"
#include "tasks/image_task.h"
#include "tests/support/message_of.h"
#include "tests/tasks/affine_model.h"
#include "training/task.h"

namespace cytra {
namespace test {
namespace {
CYTRA_REGISTER(nn::Model, AffineModel, "AffineModel");
}
}  // namespace test
namespace {

const std::string kHeads =
    "heads: {seg: {_target_: SegmentationHead, loss: {_target_: DiceCELoss}}, "
    "stain: {_target_: RegressionHead, y_key: stain, loss: {_target_: MSELoss}, "
    "metrics: {mae: {_target_: MAEMetric}}}}";

std::shared_ptr<training::Task> two_heads(const std::string& options = kHeads,
                                          const std::string& names = "[seg, stain]") {
  return make<training::Task>(
      "{_target_: MultiTask, inference_args: {roi_size: [8, 8]}, model: {_target_: AffineModel, "
      "names: " +
      names + "}, " + options + "}");
}

data::Batch batch_of_two() {
  data::Batch batch;
  batch.tensors = {{"raw", at::rand({1, 1, 8, 8}) - 0.5},
                   {"seg", at::rand({1, 1, 8, 8}).gt(0.5).to(at::kFloat)},
                   {"stain", at::rand({1, 1, 8, 8})}};
  batch.geometries.resize(1);
  return batch;
}

TEST(MultiTask, TwoHeadsNeedATargetEach) {
  const std::string heads =
      "heads: {seg: {_target_: SegmentationHead, loss: {_target_: DiceCELoss}}, stain: {_target_: "
      "RegressionHead, y_key: seg, loss: {_target_: MSELoss}}}";
  EXPECT_NE(message_of<ConfigError>([&] {
              two_heads(heads);
            }).find("heads.seg: y_key=seg is the target of the head stain"),
            std::string::npos);
  const std::string masked =
      "heads: {seg: {_target_: InstanceHead, y_key: cells, decoder: {_target_: InstanceDecoder}, "
      "metrics: {ap: {_target_: "
      "AveragePrecision}}}, stain: {_target_: RegressionHead, y_key: stain, mask_key: cells, loss: "
      "{_target_: MSELoss}}}";
  const std::string message = message_of<ConfigError>([&] { two_heads(masked); });
  EXPECT_NE(message.find("heads.stain: mask_key=cells is the target of the head seg"),
            std::string::npos)
      << message;
}

TEST(MultiTask, SumsTheLossesOfItsHeads) {
  at::manual_seed(0);
  const data::Batch batch = batch_of_two();
  const double both = two_heads()->training_step(batch).item<double>();
  const auto alone = [&](const std::string& off) {
    return two_heads(kHeads + ", weights: {" + off + ": 0}")->training_step(batch).item<double>();
  };
  const at::Tensor output = batch.at("raw") + 0.25;
  EXPECT_NEAR(alone("seg"), at::mse_loss(2 * output, batch.at("stain")).item<double>(), 1e-6);
  EXPECT_NEAR(both, alone("seg") + alone("stain"), 1e-6);
}

TEST(MultiTask, TellsTheMetricsOfEachHead) {
  at::manual_seed(0);
  const data::Batch batch = batch_of_two();
  const auto task = two_heads(kHeads + ", weights: {stain: 3}");
  task->model().eval();
  task->validation_step(batch);
  const training::Metrics metrics = task->validation_end();
  ASSERT_EQ(metrics.size(), 5U);
  EXPECT_NEAR(metrics.at("loss"), metrics.at("loss/seg") + 3 * metrics.at("loss/stain"), 1e-6);
  EXPECT_NEAR(metrics.at("mae/stain"),
              at::l1_loss(2 * (batch.at("raw") + 0.25), batch.at("stain")).item<double>(),
              1e-5);
  const at::Tensor mask = batch.at("raw").gt(-0.25), truth = batch.at("seg").ne(0);
  EXPECT_NEAR(metrics.at("dice/seg"),
              2.0 * mask.logical_and(truth).sum().item<double>() /
                  (mask.sum() + truth.sum()).item<double>(),
              1e-6);
  const auto preview = task->preview(batch);
  EXPECT_EQ(preview.size(), 5U);
  EXPECT_EQ(preview.count("seg prediction") + preview.count("stain target"), 2U);
}

TEST(MultiTask, PreparesTheTargetsOfEachHead) {
  data::Sample sample;
  sample.id = "raw_1.tif";
  sample.tensors = {{"raw", at::rand({1, 8, 8})},
                    {"seg", at::full({1, 8, 8}, 7)},
                    {"stain", at::rand({1, 8, 8})}};
  Rng rng(0);
  const auto last = two_heads()->sample_transform();
  last->apply(sample, rng);
  EXPECT_EQ(sample.at("seg").max().item<double>(), 1);
  sample.tensors.erase("stain");
  EXPECT_THROW(last->apply(sample, rng), DataError);
}

TEST(MultiTask, FitsTheDecoderOfEachHead) {
  const data::Batch batch = batch_of_two();
  const auto task = two_heads();
  const auto decoders = dynamic_cast<tasks::ImageTask&>(*task).fit_decoders(
      [&](const std::function<void(const data::Batch&)>& look) { look(batch); });
  EXPECT_NEAR(decoders.at("stain").get<std::vector<double>>("mean")[0],
              batch.at("stain").mean().item<double>(),
              1e-6);
  EXPECT_EQ(decoders.count("seg"), 0U);
}

TEST(MultiTask, RefusesHeadsThatTheModelDoesNotHave) {
  const std::string message = message_of<ConfigError>([] { two_heads(kHeads, "[seg, stains]"); });
  EXPECT_NE(message.find("task.heads.stain"), std::string::npos) << message;
  EXPECT_NE(message.find("stains"), std::string::npos) << message;
  EXPECT_THROW(two_heads(kHeads + ", weights: {segg: 1}"), ConfigError);
  EXPECT_THROW(two_heads("heads: {}"), ConfigError);
}

TEST(TrainedHead, IsAModelOfOneOutput) {
  inference::LoadedModel model;
  model.path = "two.ckpt";
  model.config = config::parse_yaml(
      "{data: {transforms: {valid: [{_target_: LoadImaged, keys: [raw, seg, stain]}, {_target_: "
      "Clipd, keys: [stain]}]}}, task: {_target_: MultiTask, x_key: raw, model: {_target_: "
      "MultiHead, backbone: "
      "{out_channels: 8}, heads: {seg: {out_channels: 3}, stain: {out_channels: 1}}}, heads: {seg: "
      "{_target_: SegmentationHead, y_key: seg, num_classes: null}, stain: {_target_: "
      "RegressionHead, y_key: stain, decoder: {_target_: RegressionDecoder}}}}}",
      "test");
  model.forward = [](const at::Tensor& windows) {
    return std::vector<at::Tensor>{windows, 2 * windows};
  };
  model.fingerprint = "f";
  EXPECT_EQ(inference::heads_of(model.config.at("task")),
            (std::vector<std::string>{"seg", "stain"}));
  const auto seg = inference::head_of(model, "seg"), stain = inference::head_of(model, "stain");
  EXPECT_EQ(seg.out_channels, 3);
  EXPECT_EQ(seg.config.get<int64_t>("task.num_classes"), 3);
  EXPECT_EQ(stain.config.get<std::string>("task.y_key"), "stain");
  EXPECT_EQ(inference::decoder_of(stain.config.at("task"))->forms().front(), "value");
  const auto& steps = seg.config.at("data.transforms.valid").list;  // without the other's target
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].get<std::vector<std::string>>("keys"),
            (std::vector<std::string>{"raw", "seg"}));
  EXPECT_NE(seg.fingerprint, stain.fingerprint);
  EXPECT_EQ(stain.forward(at::ones({1, 1, 4, 4})).at(0).max().item<double>(), 2);
  EXPECT_NE(message_of<ConfigError>([&] { inference::head_of(model, "sag"); }).find("seg"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
