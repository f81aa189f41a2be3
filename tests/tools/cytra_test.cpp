// `cytra`, which starts the other programs.
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;
using test::shell;

TEST(CytraProgram, ListsEveryProgramBesideIt) {
  const Outcome help = shell("\"$BIN/cytra\" --help");
  EXPECT_EQ(help.code, 0);
  for (const auto& entry : std::filesystem::directory_iterator(CYTRA_SOURCE_DIR "/tools")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".cpp" || name == "cytra") continue;
    EXPECT_NE(help.out.find("\n  " + name + " "), std::string::npos) << name;
  }
  const Outcome none = shell("\"$BIN/cytra\"");
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.err, help.out);
  EXPECT_EQ(shell("\"$BIN/cytra\" --version").out.substr(0, 6), "cytra ");
}

TEST(CytraProgram, StartsAProgramAlsoByALink) {
  const test::TmpDir dir;
  std::filesystem::create_symlink(CYTRA_BIN_DIR "/cytra", dir / "cytra");
  const Outcome outcome = shell("PATH='" + dir.path() +
                                ":/usr/bin:/bin'; cytra train experiment=im2im/segmentation "
                                "--explain optimizer.lr");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("optimizer.lr"), std::string::npos) << outcome.out;
  EXPECT_EQ(shell("\"$BIN/cytra\" train trainer.max_epoch=1").code, 2);
}

/// Lines that a program prints start with what its user typed, wherever the program itself lies.
TEST(CytraProgram, HintsNameTheLauncherThatWasTyped) {
  const test::TmpDir dir;
  std::filesystem::create_symlink(CYTRA_BIN_DIR "/cytra", dir / "cytra");
  std::filesystem::create_symlink(CYTRA_BIN_DIR "/predict", dir / "predict");
  EXPECT_EQ(shell("\"$BIN/generate_samples\" --train 1 --valid 1 --test 1 --size 32 --output '" +
                  (dir / "samples") + "'")
                .code,
            0);
  const std::string words =
      " experiment=im2im/segmentation data.path=samples trainer.max_steps=1 "
      "trainer.accelerator=cpu 'model.filters=[4,8]' 'patch_shape=[32,32]'";
  for (const auto& [typed, hint] :
       {std::pair<std::string, std::string>{"PATH=.:/usr/bin:/bin cytra train", "cytra predict"},
        {"./cytra train", "./cytra predict"},
        {"PATH=.:/usr/bin:/bin \"$BIN/train\"", "predict"}}) {
    const Outcome outcome = shell("cd '" + dir.path() + "' && " + typed + words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("predict:        " + hint + " 'checkpoint."), std::string::npos)
        << typed << outcome.err;
  }
  const std::string completes = "PATH='" + dir.path() + ":/usr/bin:/bin'; cytra train -sc install=";
  EXPECT_NE(shell(completes + "bash").out.find("\"${COMP_WORDS[@]:0:2}\" -sc query=bash"),
            std::string::npos);
}

TEST(CytraProgram, NamesTheNearestProgram) {
  const Outcome outcome = shell("\"$BIN/cytra\" trian");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "error: no program trian. Did you mean 'train'?\n");
  EXPECT_EQ(shell("\"$BIN/cytra\" ../bin/train").code, 2);
}

}  // namespace
}  // namespace cytra
