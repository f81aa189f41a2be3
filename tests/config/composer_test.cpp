#include "config/composer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/strings.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

/// What Hydra does too is in golden_test.cpp; here: messages, several folders, and where we differ.
class ComposerTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.write("train.yaml",
                "defaults:\n  - model: dynunet\n  - trainer: cpu\n  - experiment: null\n  - "
                "_self_\nseed: 1\n");
    tree_.write("model/dynunet.yaml", "filters: [8, 16]\nlr: ${trainer.lr}\n");
    tree_.write("model/vit.yaml", "heads: 2\n");
    tree_.write("trainer/cpu.yaml", "lr: 1e-3\nmax_epochs: 3\n");
    tree_.write("experiment/im2im/seg.yaml",
                "# @package _global_\ndefaults:\n  - override /model: vit\nseed: 2\n");
  }
  Node compose(const std::vector<std::string>& overrides) const {
    return Composer({tree_.folder()}).compose("train", overrides);
  }
  std::string error_of(const std::vector<std::string>& overrides,
                       const std::string& primary = "train") const {
    std::string text =
        message_of<ConfigError>([&] { Composer({tree_.folder()}).compose(primary, overrides); });
    for (std::size_t at; (at = text.find(tree_.folder())) != std::string::npos;)
      text.replace(at, tree_.folder().size(), "configs");
    return text;
  }
  Tree tree_;
};

TEST_F(ComposerTest, ComposesAndSetsPaths) {
  const Node config =
      compose({"trainer.max_epochs=5", "experiment=im2im/seg", "+model.filters=[4]"});
  EXPECT_EQ(
      to_json(config),
      R"({"model":{"heads":2,"filters":[4]},"trainer":{"lr":0.001,"max_epochs":5},"seed":1})");
  EXPECT_EQ(config.at("model.filters.0").path, "model.filters[0]");
  EXPECT_EQ(config.at("trainer.max_epochs").where(),
            "command line 'trainer.max_epochs=5': trainer.max_epochs");
  EXPECT_EQ(config.at("trainer.lr").where(), tree_.folder() + "/trainer/cpu.yaml:1:5: trainer.lr");
  EXPECT_EQ(config.find("model.lr"), nullptr);
}

TEST_F(ComposerTest, NearestKeyAnywhere) {
  EXPECT_EQ(error_of({"trainer.max_epoch=5"}),
            "command line 'trainer.max_epoch=5': no key 'trainer.max_epoch'. Did you mean "
            "'trainer.max_epochs'? "
            "'+trainer.max_epoch=5' would add a new key.");
  EXPECT_EQ(
      error_of({"max_epochs=5"}).substr(0, 89),
      "command line 'max_epochs=5': no key 'max_epochs'. Did you mean 'trainer.max_epochs'? '+ma");
  EXPECT_NE(error_of({"modl=vit"}).find("Did you mean 'model'?"), std::string::npos);
  EXPECT_NE(error_of({"model={filterz: 1}"}).find("Did you mean 'model.filters'?"),
            std::string::npos);
  EXPECT_NE(error_of({"~trainer.l"}).find("no key 'trainer.l'"), std::string::npos);
}

TEST_F(ComposerTest, NearestOption) {
  EXPECT_EQ(
      error_of({"model=dynune"}),
      "command line 'model=dynune': no option 'dynune' in group 'model'. Did you mean 'dynunet'?");
  EXPECT_EQ(error_of({"experiment=im2im/segg"}),
            "command line 'experiment=im2im/segg': no option 'im2im/segg' in group 'experiment'. "
            "Did you mean 'im2im/seg'?");
  EXPECT_EQ(error_of({}, "trian"), "no config 'trian' in configs. Did you mean 'train'?");
  EXPECT_EQ(error_of({"+nets/x=vit"}),
            "command line '+nets/x=vit': no group 'nets/x'. Choices: experiment, experiment/im2im, "
            "model, trainer.");
}

TEST_F(ComposerTest, TypeErrorsPointAtTheirOrigin) {
  const Node config = compose({"trainer.max_epochs=ten"});
  EXPECT_EQ(
      message_of<ConfigError>([&] { config.get<int64_t>("trainer.max_epochs"); }),
      "command line 'trainer.max_epochs=ten': trainer.max_epochs: expected an integer, got 'ten'");
}

TEST_F(ComposerTest, UnchosenGroup) {
  tree_.write("must.yaml", "defaults:\n  - model: ???\n");
  EXPECT_EQ(error_of({}, "must"),
            "configs/must.yaml:2:12: 'model' must be chosen, expected model=OPTION. Choices: "
            "dynunet, vit.");
}

TEST_F(ComposerTest, UnlikeHydra) {
  EXPECT_EQ(compose({"model=null"}).find("model"), nullptr);
  EXPECT_EQ(compose({"+ckpt=logs/epoch=3.ckpt"}).get<std::string>("ckpt"), "logs/epoch=3.ckpt");
  tree_.write("opt.yaml",
              "defaults:\n  - optional model: vit\n  - override /hydra/job_logging: "
              "colorlog\nhydra: {run: {dir: x}}\n");
  EXPECT_EQ(to_json(Composer({tree_.folder()}).compose("opt", {})), R"({"model":{"heads":2}})");
}

TEST_F(ComposerTest, SeveralFolders) {
  Tree own;
  own.write("model/vit.yaml", "heads: 9\n");
  own.write("model/own.yaml", "x: 1\n");
  const Composer composer({own.folder(), "/nowhere", tree_.folder()});
  EXPECT_EQ(composer.compose("train", {"model=vit"}).get<int64_t>("model.heads"), 9);
  for (const Group& group : composer.groups()) {
    if (group.name == "model") {
      EXPECT_EQ(join(group.options, " "), "dynunet own vit");
    }
    if (group.name == "experiment") {
      EXPECT_TRUE(group.options.empty());
    }
  }
  EXPECT_EQ(composer.groups().size(), 4U);
  EXPECT_THROW(Composer({"/nowhere"}), ConfigError);
}

TEST_F(ComposerTest, BadFiles) {
  for (const char* text : {"defaults: 3",
                           "defaults: [3]",
                           "defaults: [{a: 1, b: 2}]",
                           "defaults: [{model: 3}]",
                           "[1]",
                           "# @package a b\n",
                           "defaults: [bad]",
                           "defaults: [{odd model: vit}]",
                           "defaults: [_self_@x]",
                           "defaults: [{model: '${nope}'}]",
                           "defaults: [{model: ['${a}']}]"}) {
    tree_.write("bad.yaml", text);
    EXPECT_NE(error_of({}, "bad"), "") << text;
  }
  tree_.write("loop.yaml", "defaults: [loop, loop]");
  EXPECT_NE(error_of({}, "loop").find("loop -> loop"), std::string::npos);
  tree_.write("clash.yaml",
              "defaults:\n  - model: dynunet\n  - _self_\nmodel:\n  filters: {a: 1}\n");
  EXPECT_EQ(error_of({}, "clash"),
            "configs/clash.yaml:5:12: model.filters: a map meets the list of "
            "configs/model/dynunet.yaml:1:10, expected a list");
}

}  // namespace
}  // namespace cytra::config
