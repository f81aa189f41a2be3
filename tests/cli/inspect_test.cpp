#include "cli/inspect.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/config/tree.h"

namespace cytra::cli {
namespace {

class Inspect : public testing::Test {
 protected:
  Inspect() {
    tree_.write("train.yaml",
                "defaults:\n  - _self_\n  - model: unet\n  - experiment: null\n"
                "seed: 1\nname: run ${seed}\nliteral: '\\${seed}'\nlist: [1, 2]\n");
    tree_.write("model/unet.yaml", "width: 8\nfilters: [8, 16]\nseed: ${seed}\n");
    tree_.write("model/vit.yaml", "heads: 2\n");
    tree_.write("experiment/wide.yaml", "# @package _global_\nmodel:\n  width: 32\nseed: 5\n");
  }
  config::Composer composer() const { return config::Composer({tree_.folder()}, "train"); }
  std::string cfg(const std::string& what,
                  bool resolve,
                  const std::vector<std::string>& overrides = {},
                  const std::string& package = "") const {
    Arguments arguments;
    arguments.cfg = what;
    arguments.resolve = resolve;
    arguments.package = package;
    return composed_text(composer().load("train", overrides), arguments);
  }
  std::string at(const std::string& name) const { return tree_.folder() + "/" + name; }
  config::Tree tree_;
};

TEST_F(Inspect, ComposesBackToItself) {
  for (const bool resolve : {false, true}) {
    const std::string text = cfg("job", resolve, {"experiment=wide"});
    const config::Tree again;
    again.write("again.yaml", text);
    const config::Composer composer({again.folder()});
    EXPECT_EQ(config::to_yaml(composer.compose("again", {})),
              config::to_yaml(this->composer().compose("train", {"experiment=wide"})))
        << text;
  }
  EXPECT_EQ(
      cfg("job", false, {"model=vit"}),
      "seed: 1\nname: run ${seed}\nliteral: \\${seed}\nlist:\n  - 1\n  - 2\nmodel:\n  heads: 2\n");
  EXPECT_NE(cfg("job", true).find("name: run 1\n"), std::string::npos);
}

TEST_F(Inspect, Parts) {
  EXPECT_EQ(cfg("job", false, {}, "model"),
            "# @package model\nwidth: 8\nfilters:\n  - 8\n  - 16\nseed: ${seed}\n");
  EXPECT_EQ(cfg("hydra", false, {}, "hydra.sweep.subdir"),
            "# @package hydra.sweep.subdir\n${hydra.job.num}\n");
  EXPECT_NE(cfg("all", false).find("hydra:\n"), std::string::npos);
  EXPECT_EQ(cfg("all", false).find("hydra:\n"), 0U);
  EXPECT_EQ(message_of<ConfigError>([&] { cfg("job", false, {}, "modle"); }),
            "--package modle: no such key in this configuration. Did you mean 'model'?");
}

TEST_F(Inspect, Info) {
  const auto info = [&](const std::string& what) {
    return info_text(composer(), composer().load("train", {"experiment=wide"}), what);
  };
  EXPECT_NE(info("defaults").find("model/unet"), std::string::npos);
  EXPECT_NE(info("defaults").find("command line 'experiment=wide'"), std::string::npos);
  EXPECT_NE(info("groups").find("model       unet    unet, vit"), std::string::npos)
      << info("groups");
  EXPECT_NE(info("searchpath").find("file://" + tree_.folder()), std::string::npos);
  EXPECT_NE(info("all").find("== groups =="), std::string::npos);
  EXPECT_EQ(message_of<ConfigError>([&] { info("group"); }),
            "--info group: expected one of defaults, groups, config, searchpath, all. Did you mean "
            "'groups'?");
}

TEST_F(Inspect, Explain) {
  const auto explain = [&](const std::string& key, const std::vector<std::string>& overrides) {
    return explain_text(composer(), "train", overrides, key);
  };
  EXPECT_EQ(explain("model.width", {"experiment=wide", "model.width=64"}),
            "model.width = 64\n"
            "  8                        " +
                at("model/unet.yaml") + ":1:8   (model/unet chosen at " + at("train.yaml") +
                ":3:12)\n"
                "  32                       " +
                at("experiment/wide.yaml") +
                ":3:10   (experiment/wide chosen at command line 'experiment=wide')\n"
                "  64                       command line 'model.width=64'\n");
  EXPECT_NE(explain("model.seed", {}).find("model.seed = 1   (from ${seed})"), std::string::npos);
  EXPECT_NE(explain("list", {"~list"}).find("list no longer exists"), std::string::npos);
  EXPECT_NE(explain("list", {"~list"}).find("(removed)                command line '~list'"),
            std::string::npos);
  // A whole map: every value in it.
  EXPECT_NE(explain("model", {"+model.depth=2"}).find("model.depth = 2\n"), std::string::npos);
  EXPECT_EQ(message_of<ConfigError>([&] { explain("modle.width", {}); }),
            "no key 'modle.width' in this configuration. Did you mean 'model.width'?");
}

TEST_F(Inspect, Diff) {
  tree_.write("other.yaml", "seed: 1\nname: other\nmodel: {width: 8, filters: [8]}\nextra: 1\n");
  const std::string text =
      diff_text(composer().load("train", {"~literal"}), at("other.yaml"), false);
  for (const char* line : {"~ name: other -> run ${seed} ",
                           "~ model.filters: [8] -> [8,16] ",
                           "+ model.seed: ${seed} ",
                           "+ list: [1,2] ",
                           "- extra: 1 ",
                           "5 differences\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  tree_.write("run/.hydra/config.yaml", cfg("job", false));
  EXPECT_EQ(diff_text(composer().load("train", {}), at("run"), false), "no difference\n");
  EXPECT_THROW(diff_text(composer().load("train", {}), at("model"), false), ConfigError);
}

}  // namespace
}  // namespace cytra::cli
