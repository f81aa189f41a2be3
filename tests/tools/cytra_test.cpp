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

TEST(CytraProgram, NamesTheNearestProgram) {
  const Outcome outcome = shell("\"$BIN/cytra\" trian");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "error: no program trian. Did you mean 'train'?\n");
  EXPECT_EQ(shell("\"$BIN/cytra\" ../bin/train").code, 2);
}

}  // namespace
}  // namespace cytra
