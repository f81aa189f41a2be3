#include "app/setup/setup.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/composer.h"
#include "config/run_config.h"
#include "config/variables.h"
#include "nn/weights.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

/// `train experiment=im2im/segmentation` with a small model.
app::TrainConfig config_of(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(),
                   {"experiment=im2im/segmentation",
                    "data.path=unused",
                    "paths.output_dir=unused",
                    "trainer.accelerator=cpu",
                    "model.filters=[4,8,8]"});
  const config::Node tree =
      config::Composer({std::string(CYTRA_SOURCE_DIR) + "/configs"}).compose("train", overrides);
  config::Problems problems;
  app::TrainConfig config = config::read_options<app::TrainConfig>(
      tree,
      problems,
      {"source_col",
       "target_col",
       "spatial_dims",
       "raw_im_channels",
       "num_classes",
       "multilabel",
       "ignore_index",
       "target_values",
       "class_names",
       "patch_shape"});  // of configs/train.yaml, for others to refer to
  problems.throw_if_any();
  return config;
}

app::Setup setup_of(const std::vector<std::string>& overrides) {
  return {config_of(overrides), c10::Device(at::kCPU)};
}

const char* const kFreeze = "+callbacks.freeze={_target_: LayerFreeze, contains: [output_block]}";

TEST(Setup, EveryExperimentTrainsWithoutCallbacks) {
  const config::Composer composer({std::string(CYTRA_SOURCE_DIR) + "/configs"});
  int count = 0;
  for (const std::string& name : composer.options("experiment")) {
    for (const std::string callbacks : {"none", "timer"}) {
      const config::Composition tree = composer.load("train",
                                                     {"experiment=" + name,
                                                      "callbacks=" + callbacks,
                                                      "data.path=unused",
                                                      "paths.output_dir=unused"});
      config::Problems problems;
      config::read_options<app::TrainConfig>(
          config::job_config(tree.root), problems, config::variables_of(tree.root, tree.own_keys));
      EXPECT_EQ(message_of<ConfigError>([&] { problems.throw_if_any(); }), "") << name;
      ++count;
    }
  }
  EXPECT_GE(count, 24);
}

TEST(Setup, FiltersAloneSayHowManyLevelsThereAre) {
  EXPECT_EQ(setup_of({"model.filters=[4,8]"}).task->model().divisor(),
            (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(setup_of({"model.filters=[4,4,8,8]"}).task->model().divisor(),
            (std::vector<int64_t>{8, 8}));
}

TEST(Setup, TheOptimizerGetsTheModelAsItIsTrained) {
  const app::Setup setup = setup_of({"trainer.precision=64-true", kFreeze});
  const nn::Model& model = setup.task->model();
  EXPECT_TRUE(model.channels_last) << "placed on a CPU";
  for (const auto& [name, tensor] : nn::state_of(model)) {
    EXPECT_EQ(tensor.scalar_type(), at::kDouble) << name;
    const bool is_frozen = name.find("output_block") != std::string::npos;
    EXPECT_EQ(tensor.requires_grad(), !is_frozen) << name;
    EXPECT_EQ(setup.optimizer->state().count("exp_avg." + name), is_frozen ? 0U : 1U) << name;
  }
}

TEST(Setup, SaysWhichLayerThereIsNot) {
  const std::string message = message_of<ConfigError>(
      [] { setup_of({"+callbacks.freeze={_target_: LayerFreeze, contains: [output_blok]}"}); });
  EXPECT_NE(message.find("output_blok"), std::string::npos) << message;
}

TEST(Setup, WeightsFollowFromTheSeed) {
  const auto weight = [](const std::string& seed) {
    return setup_of({"seed=" + seed}).task->model().parameters().front().detach().clone();
  };
  EXPECT_TRUE(weight("1").equal(weight("1")));
  EXPECT_FALSE(weight("1").equal(weight("2")));
}

TEST(Setup, TakesTheCallbacksThatHaveAPart) {
  const auto names = [](const std::vector<std::string>& overrides, bool is_first_process) {
    std::string names;
    for (const auto& callback : app::make_callbacks(config_of(overrides), is_first_process))
      names += callback->name + " ";
    return names;
  };
  const std::string all = names({kFreeze}, true);
  for (const char* name : {"model_checkpoint", "model_summary", "saving", "freeze"})
    EXPECT_NE(all.find(name), std::string::npos) << name << " is not in " << all;
  const std::string trial = names({kFreeze, "trainer.fast_dev_run=true"}, true);
  EXPECT_EQ(trial.find("model_checkpoint"), std::string::npos) << trial;
  EXPECT_NE(trial.find("freeze"), std::string::npos) << trial;
  const std::string second = names({kFreeze}, false);
  EXPECT_NE(second.find("model_checkpoint"), std::string::npos) << second;
  EXPECT_EQ(second.find("saving"), std::string::npos) << second;
  EXPECT_EQ(names({kFreeze, "callbacks.freeze=null"}, true).find("freeze"), std::string::npos);
}

TEST(Setup, LoggersAreForTheFirstProcessAlone) {
  const std::vector<std::string> overrides{"logger=csv"};
  EXPECT_EQ(app::make_loggers(config_of(overrides), true).size(), 1U);
  EXPECT_TRUE(app::make_loggers(config_of(overrides), false).empty());
  EXPECT_TRUE(app::make_loggers(config_of({"logger=csv", "trainer.fast_dev_run=1"}), true).empty());
}

}  // namespace
}  // namespace cytra
