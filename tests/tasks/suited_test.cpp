#include "tasks/suited.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "tests/support/message_of.h"
#include "training/task.h"

namespace cytra {
namespace {

config::Node node(const std::string& yaml) {
  return config::parse_yaml(yaml, "test");
}

std::string loss_mistake(const std::string& yaml, const nn::Compared& learned) {
  return message_of<ConfigError>([&] { tasks::expect_loss_of(node(yaml), learned); });
}

TEST(Suited, LossesAreForWhatTheyCompare) {
  EXPECT_EQ(loss_mistake("_target_: DiceLoss", nn::kMasks), "");
  EXPECT_EQ(loss_mistake("_target_: torch.nn.MSELoss", nn::kValues), "");
  EXPECT_NE(loss_mistake("_target_: torch.nn.MSELoss", nn::kMasks).find("loss=dice_ce"),
            std::string::npos);
  EXPECT_NE(loss_mistake("_target_: CellposeLoss", nn::kMasks).find("CellposeLoss compares flows"),
            std::string::npos);
  EXPECT_NE(loss_mistake("_target_: CellposeLoss", nn::kStars).find("StarDistLoss"),
            std::string::npos);
}

TEST(Suited, LossesInOthersToo) {
  const std::string sum =
      "{_target_: WeightedLoss, losses: {a: {_target_: DiceLoss}, b: {_target_: L1Loss}}}";
  EXPECT_NE(loss_mistake(sum, nn::kMasks).find("L1Loss compares values"), std::string::npos);
  EXPECT_NE(loss_mistake(sum, nn::kValues).find("DiceLoss compares masks"), std::string::npos);
  EXPECT_NE(loss_mistake("{_target_: DeepSupervisionLoss, loss: {_target_: MSELoss}}", nn::kMasks)
                .find("MSELoss"),
            std::string::npos);
}

/// A loss that is registered and does not say what it compares would pass every task.
TEST(Suited, EveryLossOfOursIsKnown) {
  for (const std::string& name : Registry<nn::Loss>::instance().names()) {
    if (name == "WeightedLoss" || name == "DeepSupervisionLoss") continue;  // they hold others
    if (name == "ExportedLoss") continue;  // what it compares is its author's
    int fitting = 0;
    for (const nn::Compared& learned : {nn::kMasks, nn::kValues, nn::kFlows, nn::kStars})
      fitting += loss_mistake("_target_: " + name, learned).empty() ? 1 : 0;
    EXPECT_EQ(fitting, 1) << name;
  }
}

TEST(Suited, ModelsThatMakeNoImageAreRefused) {
  const auto mistake = [](const std::string& yaml) {
    return message_of<ConfigError>([&] { tasks::expect_image_model(node(yaml)); });
  };
  EXPECT_EQ(mistake("_target_: DynUNet"), "");
  EXPECT_NE(mistake("_target_: ViT").find("model=unetr"), std::string::npos);
  EXPECT_NE(mistake("_target_: cyto_dl.nn.vits.mae.MAE").find("task=mae"), std::string::npos);
  EXPECT_NE(mistake("{_target_: MultiHead, backbone: {_target_: FCOS}}").find("task=detection"),
            std::string::npos);
}

TEST(Suited, TasksAsk) {
  for (const std::string task : {"SegmentationTask", "RegressionTask"}) {
    const std::string loss = task == "SegmentationTask" ? "DiceCELoss" : "MSELoss";
    EXPECT_NE(message_of<ConfigError>([&] {
                make<training::Task>("{_target_: " + task +
                                     ", model: {_target_: MAE, img_size: [16, 16]}, "
                                     "loss: {_target_: " +
                                     loss + "}}");
              }).find("MAE gives hidden patches"),
              std::string::npos);
  }
  const std::string multi =
      "{_target_: MultiTask, model: {_target_: MultiHead}, weights: {seg: -1}, heads: "
      "{seg: {_target_: SegmentationHead, loss: {_target_: DiceCELoss}}}}";
  EXPECT_NE(
      message_of<ConfigError>([&] { make<training::Task>(multi); }).find("a weight of at least 0"),
      std::string::npos);
}

}  // namespace
}  // namespace cytra
