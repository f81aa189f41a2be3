#include "cli/completion.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "tests/config/tree.h"

namespace cytra::cli {
namespace {

using Words = std::vector<std::string>;

class Completion : public testing::Test {
 protected:
  Completion() {
    tree_.write(
        "train.yaml",
        "defaults:\n  - _self_\n  - model: unet\n  - aug@data.aug: flip\n  - experiment: null\n"
        "seed: 1\ndata: {pin: true, path: /x}\n");
    tree_.write("model/unet.yaml", "width: 8\nnet: {depth: 2, bias: true}\n");
    tree_.write("model/vit.yaml", "heads: 2\n");
    tree_.write("aug/flip.yaml", "p: 0.5\n");
    tree_.write("experiment/im2im/seg.yaml", "# @package _global_\nseed: 3\n");
  }
  Words complete(const std::string& line) const {
    Words words = shell_words(line);
    const std::string word = words.back();
    words.pop_back();
    return completions({"train", "", "", "train", "", {{"--ckpt", "c", Flag::Takes::one, ""}}},
                       config::Composer({tree_.folder()}),
                       "train",
                       words,
                       word);
  }
  config::Tree tree_;
};

TEST_F(Completion, GroupsAndKeys) {
  EXPECT_EQ(
      complete(""),
      (Words{"aug@data.aug=", "data.", "experiment=", "hydra.", "model.", "model=", "seed="}));
  EXPECT_EQ(complete("mo"), (Words{"model.", "model="}));
  EXPECT_EQ(complete("model=v"), (Words{"model=vit"}));
  EXPECT_EQ(complete("model.net."), (Words{"model.net.bias=", "model.net.depth="}));
  EXPECT_EQ(complete("experiment="), (Words{"experiment=im2im/seg"}));
  EXPECT_EQ(complete("aug@data.aug="), (Words{"aug@data.aug=flip"}));
  EXPECT_EQ(complete("hydra/la"), (Words{"hydra/launcher="}));
  EXPECT_EQ(complete("hydra/launcher="), (Words{"hydra/launcher=basic", "hydra/launcher=joblib"}));
}

TEST_F(Completion, FollowsTheChoicesBefore) {
  EXPECT_EQ(complete("model=vit model."), (Words{"model.heads="}));
  // A line that is wrong so far does not silence the rest.
  EXPECT_EQ(complete("model=nope see"), (Words{"seed="}));
  EXPECT_EQ(complete("a=1,2 'open see"), Words());
}

TEST_F(Completion, Values) {
  EXPECT_EQ(complete("data.pin="), (Words{"data.pin=false", "data.pin=true"}));
  EXPECT_EQ(complete("model.width="), (Words{"model.width=8"}));
  EXPECT_EQ(complete("data.path="), Words());  // the shell offers files
  EXPECT_EQ(complete("nope="), Words());
}

TEST_F(Completion, PrefixesAndFlags) {
  EXPECT_EQ(complete("~mod"), (Words{"~model.", "~model="}));
  EXPECT_EQ(complete("+aug"), (Words{"+aug=", "+aug@data.aug="}));
  EXPECT_EQ(complete("--cf"), (Words{"--cfg"}));
  EXPECT_EQ(complete("--ck"), (Words{"--ckpt"}));
  EXPECT_EQ(complete("--cfg h"), (Words{"hydra"}));
  EXPECT_EQ(complete("--explain model.n"),
            (Words{"model.net", "model.net.bias", "model.net.depth"}));
}

TEST_F(Completion, SplitsAsAShell) {
  EXPECT_EQ(shell_words("train  a='b c' d\\ e \"f"), (Words{"train", "a=b c", "d e", "f"}));
  EXPECT_EQ(shell_words("train "), (Words{"train", ""}));
  EXPECT_EQ(shell_words(""), (Words{""}));
}

TEST_F(Completion, AModeIsAFlagWithAnEntry) {
  const Program program{"train", "", "", "train", "entry", {}, {{"--look", "other", "looks"}}};
  EXPECT_EQ(completions(program, config::Composer({tree_.folder()}), "train", {}, "--lo"),
            Words{"--look"});
  EXPECT_NE(flags_help(program).find("--look"), std::string::npos);
  std::string words[] = {"train", "--look", "a=1"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data()};
  EXPECT_EQ(parse_arguments(program, 3, argv).entry, "other");
  EXPECT_EQ(parse_arguments(program, 3, argv).overrides, Words{"a=1"});
  EXPECT_EQ(parse_arguments(program, 1, argv).entry, "entry");
}

TEST_F(Completion, UnknownShell) {
  const config::Composer composer({tree_.folder()});
  const Program program{"train", "", "", "train", "", {}};
  EXPECT_THROW(shell_completion(program, composer, "train", "install=tcsh"), ConfigError);
  EXPECT_THROW(shell_completion(program, composer, "train", "bash"), ConfigError);
  EXPECT_NE(shell_completion(program, composer, "train", "install=zsh")
                .find("compdef _cytra_train train"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra::cli
