#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/batch.h"
#include "data/sample.h"
#include "nn/model.h"
#include "tests/support/message_of.h"
#include "training/optimizer.h"
#include "training/task.h"

namespace cytra {
namespace {

std::shared_ptr<training::Task> classification(const std::string& options = "") {
  return make<training::Task>(
      "{_target_: ClassificationTask, loss: {_target_: CrossEntropyLoss}, model: {_target_: "
      "ImageClassifier, backbone: {_target_: PlainConvUNet, n_stages: 2, features_per_stage: [4, "
      "8]}}" +
      options + "}");
}

data::Sample with_word(const std::string& word, double value) {
  data::Sample sample;
  sample.id = word + ".tif";
  sample.tensors["raw"] = at::rand({1, 8, 8}) + value;
  sample.columns["label"] = word;
  return sample;
}

/// The batch that a loader makes of a bright image and a dark one.
data::Batch labelled_batch(training::Task& task) {
  std::vector<data::Sample> samples{with_word("dark", 0), with_word("bright", 2)};
  Rng rng(0);
  for (data::Sample& sample : samples) task.sample_transform()->apply(sample, rng);
  return data::collate(std::move(samples));
}

constexpr const char* kNames = ", class_names: [dark, bright]";

TEST(ClassificationTask, LearnsWordsOfATable) {
  at::manual_seed(0);
  const auto task = classification(kNames);
  const data::Batch batch = labelled_batch(*task);
  EXPECT_TRUE(at::equal(batch.at("label").flatten(), at::tensor({0.0F, 1.0F})));
  EXPECT_EQ(task->model()(batch.at("raw")).sizes(), (std::vector<int64_t>{2, 2, 1, 1}));
  const auto optimizer = make<training::Optimizer>("{_target_: AdamW}");
  optimizer->attach(task->model().named_parameters().pairs());
  const double before = task->training_step(batch).item<double>();
  for (int step = 0; step < 100; ++step) {
    optimizer->zero_grad();
    task->training_step(batch).backward();
    optimizer->step({0.01});
  }
  EXPECT_LT(task->training_step(batch).item<double>(), before / 4);
  task->model().eval();
  const at::NoGradGuard no_grad;
  task->validation_step(batch);
  EXPECT_EQ(task->validation_end().at("accuracy"), 1);
}

TEST(ClassificationTask, NamesTheImageWithAnotherWord) {
  const auto task = classification(kNames);
  Rng rng(0);
  data::Sample sample = with_word("brigt", 0);
  const std::string message =
      message_of<DataError>([&] { task->sample_transform()->apply(sample, rng); });
  EXPECT_NE(message.find("brigt.tif: 'label' is 'brigt', expected one of dark, bright"),
            std::string::npos)
      << message;
  sample.columns.clear();
  EXPECT_NE(
      message_of<DataError>([&] { task->sample_transform()->apply(sample, rng); }).find("no class"),
      std::string::npos);
}

TEST(ClassificationTask, RefusesWhatTellsNoClass) {
  EXPECT_NE(message_of<ConfigError>([] {
              make<training::Task>(
                  "{_target_: ClassificationTask, loss: {_target_: "
                  "CrossEntropyLoss}, model: {_target_: UNet, spatial_dims: 2, "
                  "in_channels: 1, out_channels: 2, channels: [4, 8], strides: "
                  "[2]}}");
            }).find("model=image_classifier"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] {
              classification(", class_names: [one]");
            }).find("class_names: 1 names"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
