// Values that nothing reads are told.
#include "config/unread.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

class Unread : public testing::Test {
 protected:
  void SetUp() override {
    tree_.write("train.yaml",
                "defaults:\n  - _self_\n  - loss: dice\n  - task: masks\n  - experiment: null\n"
                "classes: 1\ncolumn: seg\nmine:\n  a: ${column}\n");
    tree_.write("loss/dice.yaml", "_target_: Dice\nsmooth: 1\n");
    tree_.write("loss/mse.yaml", "_target_: Mse\n");
    tree_.write("task/masks.yaml", "loss: ${loss}\nchannels: ${eval:'${classes} + 1'}\n");
    tree_.write("task/flows.yaml", "loss: null\nkey: ${column}\n");
    tree_.write("task/heads.yaml", "heads: {seg: {loss: {_target_: Dice}}, stain: {loss: null}}\n");
    tree_.write("experiment/mine.yaml",
                "# @package _global_\ndefaults:\n  - override /loss: mse\nclasses: 3\n");
  }
  /// What is noted, a line each, then what is wrong.
  std::string told(const std::vector<std::string>& overrides) const {
    const Composition tree = Composer({tree_.folder()}).load("train", overrides);
    Problems problems;
    tell_unread(tree.root, tree.files, {"task", "hydra"}, {"loss"}, problems);
    std::string text = join(problems.notes(), "\n");
    text += message_of<ConfigError>([&] { problems.throw_if_any(); });
    for (std::size_t at; (at = text.find(tree_.folder())) != std::string::npos;)
      text.replace(at, tree_.folder().size(), "configs");
    return text;
  }
  Tree tree_;
};

TEST_F(Unread, WhatIsReferredToIsRead) {
  EXPECT_EQ(told({}), "");
  EXPECT_EQ(told({"loss=mse", "classes=2", "experiment=mine"}), "");
  EXPECT_EQ(told({"task=flows", "column=x"}), "");
  EXPECT_EQ(told({"task=flows"}), "") << "a default that nobody chose";
  EXPECT_EQ(told({"+note=1", "task.channels=${note}"}), "");
}

TEST_F(Unread, AChoiceWithoutEffectIsAMistake) {
  EXPECT_EQ(told({"task=flows", "loss=mse"}),
            "command line 'loss=mse': no effect, nothing in this configuration refers to 'loss'; "
            "expected '+loss@task.loss=mse'");
  EXPECT_EQ(
      told({"task=heads", "loss.smooth=2"}),
      "command line 'loss.smooth=2': no effect, nothing in this configuration refers to "
      "'loss'; expected '+loss@task.heads.seg.loss=...' or '+loss@task.heads.stain.loss=...'");
}

TEST_F(Unread, AValueIsNoted) {
  EXPECT_EQ(told({"task=heads", "column=x"}),
            "command line 'column=x': no effect, nothing in this configuration reads 'column'");
  EXPECT_EQ(told({"+metrics={dice: {}}"}),
            "command line '+metrics={dice: {}}': no effect, nothing in this configuration reads "
            "'metrics'");
  EXPECT_EQ(told({"mine.a=3"}),
            "command line 'mine.a=3': no effect, nothing in this configuration reads 'mine'");
}

TEST_F(Unread, AnExperimentIsNoted) {
  EXPECT_EQ(
      told({"task=heads", "experiment=mine"}),
      "configs/experiment/mine.yaml:4:10: no effect, nothing in this configuration reads "
      "'classes'\nconfigs/experiment/mine.yaml:3:21: no effect, nothing in this configuration "
      "reads 'loss'");
}

}  // namespace
}  // namespace cytra::config
