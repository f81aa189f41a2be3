// Five folds against nnU-Net's are in datasets_test.cpp.
#include "data/folds.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/data/datamodule_fixture.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

/// Names of the images of a split in one of three folds.
std::vector<std::string> in_fold(const std::string& module, int fold, data::Split split) {
  const auto made = make("{folds: 3, fold: " + std::to_string(fold) + ", " + module + "}");
  std::vector<std::string> names;
  for (const data::Sample& sample : made->items(split))
    names.push_back(std::filesystem::path(sample.id).filename().string());
  return names;
}

/// Every image is in one validation set, and in the training sets of the other folds.
void expect_partition(const std::string& module, std::size_t count) {
  std::multiset<std::string> validated;
  for (const int fold : {0, 1, 2}) {
    const auto valid = in_fold(module, fold, data::Split::valid);
    const auto train = in_fold(module, fold, data::Split::train);
    EXPECT_EQ(valid.size() + train.size(), count);
    std::set<std::string> all(valid.begin(), valid.end());
    all.insert(train.begin(), train.end());
    EXPECT_EQ(all.size(), count) << "an image is in both";
    validated.insert(valid.begin(), valid.end());
  }
  EXPECT_EQ(validated.size(), count);
  EXPECT_EQ(std::set<std::string>(validated.begin(), validated.end()).size(), count);
}

TEST(Folds, ManifestsAreParted) {
  const test::TmpDir dir;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    touch(dir / (std::string(name) + ".tif"));
  touch(dir / "train.csv", "raw\na.tif\nb.tif\nc.tif\nd.tif\n");
  touch(dir / "valid.csv", "raw\ne.tif\nf.tif\n");
  touch(dir / "test.csv", "raw\ng.tif\n");
  const std::string of_folder =
      "_target_: DataframeDatamodule, columns: [raw], path: '" + dir.path() + "'";
  expect_partition(of_folder, 6);
  EXPECT_EQ(in_fold(of_folder, 0, data::Split::test), std::vector<std::string>{"g.tif"});
  touch(dir / "all.csv",
        "raw,split\na.tif,train\nb.tif,train\nc.tif,valid\nd.tif,train\ne.tif,valid\nf.tif,"
        "train\ng.tif,test\n");
  const std::string of_file =
      "_target_: DataframeDatamodule, columns: [raw], path: '" + (dir / "all.csv") + "'";
  expect_partition(of_file, 7);  // no column says which are for the test
  expect_partition(of_file + ", split_column: split", 6);
  EXPECT_EQ(in_fold(of_file + ", split_column: split", 1, data::Split::valid),
            in_fold(of_folder, 1, data::Split::valid));
}

TEST(Folds, FoldersAreParted) {
  const test::TmpDir dir;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    touch((dir / "flat/raw/") + name + ".tif");
    touch(dir / (std::string(*name < 'd' ? "parted/train" : "parted/valid") + "/raw/") + name +
          ".tif");
  }
  for (const char* folder : {"flat", "parted"}) {
    expect_partition("_target_: FolderDatamodule, columns: [raw], path: '" + (dir / folder) + "'",
                     5);
  }
  const std::string flat =
      "_target_: FolderDatamodule, columns: [raw], path: '" + (dir / "flat") + "'";
  EXPECT_EQ(in_fold(flat, 2, data::Split::test), in_fold(flat, 2, data::Split::valid));
}

TEST(Folds, TimePointsOfAFileStayTogether) {
  const test::TmpDir dir;
  std::string rows = "raw,timepoint\n";
  for (const char* name : {"a", "b", "c"}) {
    touch(dir / (std::string(name) + ".tif"));
    rows += std::string(name) + ".tif,\"0,1,2\"\n";
  }
  touch(dir / "all.csv", rows);
  const std::string module =
      "_target_: DataframeDatamodule, columns: [raw], path: '" + (dir / "all.csv") + "'";
  for (const int fold : {0, 1, 2}) {
    const auto valid = in_fold(module, fold, data::Split::valid);
    EXPECT_EQ(std::set<std::string>(valid.begin(), valid.end()).size(), 1U);
    EXPECT_EQ(valid.size(), 3U);
  }
}

TEST(Folds, RefuseWhatCanNotBe) {
  const test::TmpDir dir;
  touch(dir / "raw/a.tif");
  const std::string folder =
      "_target_: FolderDatamodule, columns: [raw], path: '" + dir.path() + "'";
  const auto message = [&](const std::string& options) {
    return message_of(
        [&] { make("{" + options + ", " + folder + "}")->items(data::Split::train); });
  };
  EXPECT_NE(message("folds: 5").find("5, but there are 1"), std::string::npos);
  EXPECT_NE(message("folds: 5, fold: 5").find("0 to 4"), std::string::npos);
  EXPECT_NE(message("fold: 1").find("folds"), std::string::npos);
}

}  // namespace
}  // namespace cytra
