// Classes, labels and numbers of whole images, from a table's cells to metrics.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/loader/batch_transform.h"
#include "data/sample/sample.h"
#include "nn/model.h"
#include "tasks/image_task.h"
#include "tests/support/message_of.h"
#include "training/optimizer.h"

namespace cytra {
namespace {

constexpr const char* kOfClasses = "ClassificationTask, loss: {_target_: CrossEntropyLoss}";
constexpr const char* kOfNumbers = "ScalarRegressionTask, loss: {_target_: MSELoss}";
constexpr const char* kDarkAndBright = ", class_names: [dark, bright]";

std::shared_ptr<training::Task> whole_image_task(const std::string& kind,
                                                 const std::string& options,
                                                 int64_t outputs = 2) {
  return make<training::Task>(
      "{_target_: " + kind +
      ", model: {_target_: ImageClassifier, out_channels: " + std::to_string(outputs) +
      ", backbone: {_target_: SegResNet, spatial_dims: 2, init_filters: 8, blocks_down: [1, 1], "
      "blocks_up: [1]}}" +
      options + "}");
}

using Cells = std::map<std::string, std::string>;

data::Sample sample_with(const Cells& cells, double value) {
  data::Sample sample;
  sample.id = "a.tif";
  sample.tensors["raw"] = at::rand({1, 8, 8}) + value;
  sample.columns = cells;
  return sample;
}

/// The batch that a loader makes of a dark image and a bright one.
data::Batch batch_with(training::Task& task, const Cells& dark, const Cells& bright) {
  std::vector<data::Sample> samples{sample_with(dark, 0), sample_with(bright, 2)};
  Rng rng(0);
  for (data::Sample& sample : samples) task.sample_transform()->apply(sample, rng);
  return data::collate(std::move(samples));
}

/// The loss after some steps as a share of that before, and the metrics then.
std::pair<double, training::Metrics> after_steps(training::Task& task, const data::Batch& batch) {
  const auto optimizer = make<training::Optimizer>("{_target_: AdamW}");
  optimizer->attach(task.model().named_parameters().pairs());
  const double before = task.training_step(batch).item<double>();
  for (int step = 0; step < 25; ++step) {
    optimizer->zero_grad();
    task.training_step(batch).backward();
    optimizer->step({0.01});
  }
  const double share = task.training_step(batch).item<double>() / before;
  task.model().eval();
  const at::NoGradGuard no_grad;
  task.validation_step(batch);
  return {share, task.validation_end()};
}

std::string refusal(training::Task& task, const Cells& cells) {
  data::Sample sample = sample_with(cells, 0);
  Rng rng(0);
  return message_of<DataError>([&] { task.sample_transform()->apply(sample, rng); });
}

TEST(ClassificationTask, LearnsWordsOfATable) {
  at::manual_seed(0);
  const auto task = whole_image_task(kOfClasses,
                                     std::string(kDarkAndBright) +
                                         ", metrics: {a: {_target_: MulticlassAccuracy}, b: "
                                         "{_target_: MulticlassAUROC}}");
  const data::Batch batch = batch_with(*task, {{"label", "dark"}}, {{"label", " bright "}});
  EXPECT_TRUE(at::equal(batch.at("label").flatten(), at::tensor({0.0F, 1.0F})));
  EXPECT_EQ(task->model()(batch.at("raw")).sizes(), (std::vector<int64_t>{2, 2, 1, 1}));
  const auto [share, metrics] = after_steps(*task, batch);
  EXPECT_LT(share, 0.25);
  EXPECT_EQ(metrics.at("balanced_accuracy"), 1);
  EXPECT_EQ(metrics.at("recall_bright"), 1);
  EXPECT_EQ(metrics.at("roc_auc_dark"), 1);
}

TEST(ClassificationTask, LearnsLabelsThatDoNotExcludeEachOther) {
  at::manual_seed(0);
  const auto task = whole_image_task(
      kOfClasses,
      ", multilabel: true, class_names: [any, light], metrics: {a: {_target_: MulticlassAccuracy, "
      "average: micro}, c: {_target_: MulticlassCalibrationError}}");
  const data::Batch batch =
      batch_with(*task, {{"any", "1"}, {"light", "False"}}, {{"any", "1.0"}, {"light", "1"}});
  EXPECT_TRUE(at::equal(batch.at("label").flatten(), at::tensor({1.0F, 0.0F, 1.0F, 1.0F})));
  const auto [share, metrics] = after_steps(*task, batch);
  EXPECT_LT(share, 0.25);
  EXPECT_EQ(metrics.at("accuracy"), 1);
  EXPECT_LT(metrics.at("calibration_error"), 0.3);
  EXPECT_NE(refusal(*task, {{"any", "1"}, {"light", "2"}}).find("'light' is '2', expected 0 or 1"),
            std::string::npos);
}

TEST(ClassificationTask, MixesClassesThatAreChannels) {
  const auto task = whole_image_task(kOfClasses, std::string(kDarkAndBright) + ", one_hot: true");
  data::Batch batch = batch_with(*task, {{"label", "dark"}}, {{"label", "bright"}});
  EXPECT_EQ(batch.at("label").sizes(), (std::vector<int64_t>{2, 2}));
  const auto mix = make<data::BatchTransform>("{_target_: MixUpd, keys: [raw, label]}");
  std::vector<Rng> rngs{Rng(1), Rng(2)};
  mix->apply(batch, rngs);
  const at::Tensor shares = batch.at("label");
  EXPECT_LT((shares.sum(1) - 1).abs().max().item<double>(), 1e-6);
  EXPECT_GT(shares.min().item<double>(), 0);
  const at::Tensor logits = task->model()(batch.at("raw")).flatten(1);
  EXPECT_NEAR(task->training_step(batch).item<double>(),
              -(shares * logits.log_softmax(1)).sum(1).mean().item<double>(),
              1e-5);
}

/// Class weights, label smoothing and the focal loss take class numbers, as of voxels.
TEST(ClassificationTask, TakesTheLossesOfSegmentation) {
  for (const char* loss : {"{_target_: CrossEntropyLoss, weight: [1, 3], label_smoothing: 0.1}",
                           "{_target_: FocalLoss, use_softmax: true}"}) {
    at::manual_seed(0);
    const auto task =
        whole_image_task(std::string("ClassificationTask, loss: ") + loss, kDarkAndBright);
    const data::Batch batch = batch_with(*task, {{"label", "dark"}}, {{"label", "bright"}});
    EXPECT_LT(after_steps(*task, batch).first, 0.7) << loss;
  }
}

TEST(ClassificationTask, NamesTheImageWithAnotherWord) {
  const auto task = whole_image_task(kOfClasses, kDarkAndBright);
  const std::string message = refusal(*task, {{"label", "brigt"}});
  EXPECT_NE(message.find("a.tif: 'label' is 'brigt', expected one of class_names: dark, bright"),
            std::string::npos)
      << message;
  EXPECT_NE(refusal(*task, {}).find("no 'label'"), std::string::npos);
  const auto numbered = whole_image_task(kOfClasses, "");
  EXPECT_EQ(refusal(*numbered, {{"label", "1.0"}}), "");
  for (const char* cell : {"2", "-1", "0.5", "dark", ""})
    EXPECT_NE(refusal(*numbered, {{"label", cell}}).find("expected 0 to 1"), std::string::npos)
        << cell;
}

TEST(ClassificationTask, RefusesATrainingOfOneClass) {
  const auto task =
      std::dynamic_pointer_cast<tasks::ImageTask>(whole_image_task(kOfClasses, kDarkAndBright));
  const data::Batch one = batch_with(*task, {{"label", "dark"}}, {{"label", "dark"}}),
                    two = batch_with(*task, {{"label", "dark"}}, {{"label", "bright"}});
  EXPECT_NE(message_of<DataError>([&] {
              task->fit_decoders([&](const auto& look) { look(one); });
            }).find("all 2 images that training begins with are of the class dark"),
            std::string::npos);
  task->fit_decoders([&](const auto& look) {
    look(one);
    look(two);
  });
}

TEST(ClassificationTask, RefusesWhatTellsNoClass) {
  const auto refused = [](const std::string& kind, const std::string& options, int64_t outputs) {
    return message_of<ConfigError>([&] { whole_image_task(kind, options, outputs); });
  };
  EXPECT_NE(message_of<ConfigError>([] {
              make<training::Task>(
                  std::string("{_target_: ") + kOfClasses +
                  ", model: {_target_: UNet, out_channels: 2, channels: [4, 8], strides: [2]}}");
            }).find("model=image_classifier"),
            std::string::npos);
  EXPECT_NE(refused(kOfClasses, ", class_names: [one]", 2).find("class_names: 1 names"),
            std::string::npos);
  EXPECT_NE(refused(kOfClasses, ", multilabel: true", 2).find("expected the labels' columns"),
            std::string::npos);
  EXPECT_NE(refused(kOfClasses, ", num_classes: 3", 2).find("out_channels=2, expected 3"),
            std::string::npos);
  EXPECT_NE(refused(kOfNumbers, ", columns: [age, size]", 1).find("one for each of task.columns"),
            std::string::npos);
}

TEST(ScalarRegressionTask, LearnsNumbersInTheirUnits) {
  at::manual_seed(0);
  const auto task = std::dynamic_pointer_cast<tasks::ImageTask>(whole_image_task(
      kOfNumbers,
      ", columns: [age, size], metrics: {a: {_target_: MAEMetric}, r: {_target_: R2Score}}"));
  const data::Batch batch =
      batch_with(*task, {{"age", "20"}, {"size", "-5"}}, {{"age", "60"}, {"size", "-5.5"}});
  const auto decoders = task->fit_decoders([&](const auto& look) { look(batch); });
  EXPECT_EQ(decoders.at("").get<std::vector<double>>("mean"), (std::vector<double>{40, -5.25}));
  EXPECT_EQ(decoders.at("").get<std::vector<double>>("std"), (std::vector<double>{20, 0.25}));
  const auto [share, metrics] = after_steps(*task, batch);
  EXPECT_LT(share, 0.2);
  EXPECT_LT(metrics.at("mae"), 5);
  EXPECT_GT(metrics.at("r2_age"), 0.8);
  EXPECT_NE(
      refusal(*task, {{"age", "old"}, {"size", "1"}}).find("'age' is 'old', expected a number"),
      std::string::npos);
}

}  // namespace
}  // namespace cytra
