#include "data/datamodule.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

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

TEST(DataframeDatamodule, NamesOfImagesMayLeadAnywhereButToWhatIsNoFile) {
  const test::TmpDir dir;
  touch(dir / "in/m.csv");
  const auto read = [&](std::string cell) {
    for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2)
      cell.insert(at, 1, '"');
    touch(dir / "in/m.csv", "raw\n\"" + cell + "\"\n");
    return make("{_target_: DataframeDatamodule, path: '" + (dir / "in/m.csv") +
                "', columns: [raw]}")
        ->items(data::Split::train);
  };
  // The user's own table: absolute names, ".." and links are right
  for (const std::string name : {"a b.tif",
                                 "\xC3\xA4.tif",
                                 "\xE4.tif",
                                 "a=b.tif",
                                 "it's.tif",
                                 "\"q\".tif",
                                 "-a.tif",
                                 "a,b.tif",
                                 "#a.tif",
                                 "%2e%2e.tif",
                                 "a\\b.tif",
                                 "~.tif",
                                 "a.tif.",
                                 "a\nb.tif",
                                 " "}) {
    touch(dir / ("in/" + name));
    touch(dir / ("out/" + name));
    for (const std::string& cell :
         {name, "../out/" + name, dir / ("out/" + name), "./x/../" + name}) {
      if (cell[0] == '.' && cell[1] == '/') fs::create_directory(dir / "in/x");
      EXPECT_TRUE(fs::exists(read(cell)[0].paths.at("raw"))) << cell;
    }
  }
  fs::create_symlink("../out/a,b.tif", dir / "in/link.tif");
  EXPECT_EQ(read("link.tif").size(), 1U);
  ASSERT_EQ(::mkfifo((dir / "in/fifo.tif").c_str(), 0666), 0);
  fs::create_symlink("loop.tif", dir / "in/loop.tif");
  fs::create_symlink("nowhere", dir / "in/dangling.tif");
  for (const std::string& cell : {std::string("fifo.tif"),
                                  std::string("loop.tif"),
                                  std::string("dangling.tif"),
                                  std::string("/dev/zero"),
                                  std::string("/dev/stdin/"),
                                  std::string("nothing\n.tif"),
                                  std::string(300, 'x'),
                                  std::string(5000, 'x'),
                                  std::string("%2e%2e/out/a,b.tif"),
                                  std::string("..\\out\\a,b.tif"),
                                  std::string("~/a.tif"),
                                  std::string("\x1b[31m"),
                                  std::string("file:///etc/passwd"),
                                  std::string("$HOME")}) {
    const std::string message = message_of([&] { read(cell); });
    EXPECT_EQ(message.rfind(dir / "in/m.csv:2: column 'raw': ", 0), 0U) << message;
    EXPECT_EQ(message.find_first_of("\n\x1b"), std::string::npos) << message;
    EXPECT_LT(message.size(), 800U);
  }
}

TEST(DataModules, PathsThatAreNoFoldersAreRefused) {
  const test::TmpDir dir;
  fs::create_symlink("loop", dir / "loop");
  ASSERT_EQ(::mkfifo((dir / "fifo.csv").c_str(), 0666), 0);
  for (const std::string& path : {std::string(300, 'x'),
                                  std::string(5000, 'x'),
                                  dir / "loop",
                                  dir / "fifo.csv",
                                  std::string("/dev/zero"),
                                  std::string("/dev/null")}) {
    for (const char* name : {"DataframeDatamodule", "FolderDatamodule"}) {
      EXPECT_NE(
          message_of([&] {
            make(std::string("{_target_: ") + name + ", path: '" + path + "', columns: [raw]}")
                ->items(data::Split::train);
          }),
          "nothing was thrown");
    }
  }
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
