#include "data/datamodule.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;

std::shared_ptr<data::DataModule> make(const std::string& text) {
  return Registry<data::DataModule>::instance().make(config::parse_yaml(text, "test"));
}

void touch(const std::string& path, const std::string& text = "x") {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error), 2);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(DataframeDatamodule, ReadsTheManifestOfEachSplit) {
  const test::TmpDir dir;
  touch(dir / "img/a.tif");
  touch(dir / "img/b.tif");
  touch(dir / "train.csv", "raw,seg,note\nimg/a.tif,img/b.tif,first\n");
  const auto module =
      make("{_target_: DataframeDatamodule, path: '" + dir.path() + "', columns: [raw, seg]}");
  const auto items = module->items(data::Split::train);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].sources.at("seg").path, dir / "img/b.tif");
  EXPECT_EQ(items[0].id, dir / "img/a.tif");
  EXPECT_NE(message_of([&] { module->items(data::Split::valid); }).find("no valid.csv"),
            std::string::npos);
}

TEST(DataframeDatamodule, NamesTheRowThatIsWrong) {
  const test::TmpDir dir;
  touch(dir / "a.tif");
  const auto message = [&](const std::string& csv) {
    touch(dir / "m.csv", csv);
    return message_of([&] {
      make("{_target_: DataframeDatamodule, path: '" + (dir / "m.csv") + "', columns: [raw]}")
          ->items(data::Split::train);
    });
  };
  EXPECT_NE(message("raw\na.tif\nb.tif\n").find("m.csv:3"), std::string::npos);
  EXPECT_NE(message("raw\n\"\"\n").find("m.csv:2"), std::string::npos);
  EXPECT_NE(message("row\na.tif\n").find("Did you mean 'row'?"), std::string::npos);
  EXPECT_NE(message("raw\n").find("no rows"), std::string::npos);
}

TEST(FolderDatamodule, PairsImagesByNameAndHoldsSomeOut) {
  const test::TmpDir dir;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    touch(dir / ("raw/" + std::string(name) + ".ome.tif"));
    touch(dir / ("seg/" + std::string(name) + ".png"));
  }
  const std::string text = "{_target_: FolderDatamodule, path: '" + dir.path() +
                           "', columns: [raw, seg], valid_fraction: 0.4}";
  const auto train = make(text)->items(data::Split::train),
             valid = make(text)->items(data::Split::valid);
  ASSERT_EQ(train.size(), 3U);
  ASSERT_EQ(valid.size(), 2U);
  EXPECT_EQ(train[0].sources.at("seg").path, dir / "seg/a.png");
  EXPECT_EQ(valid[0].id, dir / "raw/d.ome.tif");
  fs::remove(dir / "seg/b.png");
  EXPECT_NE(message_of([&] { make(text)->items(data::Split::train); }).find("raw/b.ome.tif"),
            std::string::npos);
}

TEST(FolderDatamodule, TakesSplitFolders) {
  const test::TmpDir dir;
  touch(dir / "train/raw/a.tif");
  touch(dir / "valid/raw/b.tif");
  const auto module =
      make("{_target_: FolderDatamodule, path: '" + dir.path() + "', columns: raw}");
  EXPECT_EQ(module->items(data::Split::valid)[0].id, dir / "valid/raw/b.tif");
  EXPECT_NE(message_of([&] { module->items(data::Split::test); }).find("no such folder"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
