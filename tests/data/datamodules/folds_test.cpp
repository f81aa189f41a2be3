// Five folds against nnU-Net's are in datasets_test.cpp.
#include "data/datamodules/folds.h"

#include <algorithm>
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

TEST(Folds, OfAStratifiedTableHaveEachWordAlike) {
  const test::TmpDir dir;
  std::string rows = "raw,kind\n";
  for (int i = 0; i < 12; ++i) {
    const std::string name = (i % 4 == 0 ? "rare" : "often") + std::to_string(i) + ".tif";
    touch(dir / name);
    rows += name + (i % 4 == 0 ? ",rare\n" : ",often\n");
  }
  touch(dir / "all.csv", rows);
  const std::string module =
      "_target_: DataframeDatamodule, columns: [raw, kind], path: '" + (dir / "all.csv") + "'";
  expect_partition(module + ", stratify: kind", 12);
  for (const int fold : {0, 1, 2}) {
    const auto names = in_fold(module + ", stratify: kind", fold, data::Split::valid);
    EXPECT_EQ(names.size(), 4U);
    EXPECT_EQ(
        std::count_if(
            names.begin(), names.end(), [](const std::string& name) { return name[0] == 'r'; }),
        1);
  }
  EXPECT_NE(message_of([&] {
              in_fold(module + ", stratify: sort", 0, data::Split::train);
            }).find("data.stratify: no column 'sort'"),
            std::string::npos);
}

TEST(Folds, RowsThatTrainingAloneTakesStayInOneFold) {
  const test::TmpDir dir;
  std::string rows = "raw,seg\n";
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i) + ".tif";
    touch(dir / name);
    rows += name + (i % 4 == 0 ? ",\n" : "," + name + "\n");
  }
  touch(dir / "all.csv", rows);
  expect_partition(
      "_target_: DataframeDatamodule, columns: [raw, seg], on_error: skip, transforms: {train: "
      "[{_target_: RemoveNaNKeysd}], valid: []}, path: '" +
          (dir / "all.csv") + "'",
      20);
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

namespace fs = std::filesystem;
using data::Split;

// No image is in training and in validation, whatever it lies in.
class SharedImages : public ::testing::Test {
 protected:
  void copy_set(const std::string& folder) const {
    fs::create_directories(folder);
    for (const char* name : {"split_t0_c0", "split_t0_c1", "split_t1_c0", "split_t1_c1"}) {
      const std::string file = std::string(name) + ".ome.tif";
      fs::copy(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/ome_set/" + file,
               folder + "/" + file);
    }
  }
  std::vector<data::Sample> of_tables(Split split, const std::string& more = "") const {
    const auto module = make("{_target_: DataframeDatamodule, path: '" + dir_.path() +
                             "', columns: [raw]" + more + "}");
    const std::vector<data::Sample> listed = module->items(split);
    if (split == Split::valid)
      dynamic_cast<const data::Parted&>(*module).expect_parts(module->items(Split::train), listed);
    return listed;
  }
  std::string refusal() const {
    return message_of([&] { of_tables(Split::valid); });
  }
  const test::TmpDir dir_;
};

TEST_F(SharedImages, TablesThatNameAnImageTwiceAreRefused) {
  for (const char* name : {"a.tif", "b.tif", "c.tif"}) touch(dir_ / name);
  fs::create_symlink(dir_ / "a.tif", dir_ / "link.tif");
  touch(dir_ / "train.csv", "raw\na.tif\nb.tif\n");
  touch(dir_ / "valid.csv", "raw\nc.tif\n");
  EXPECT_EQ(of_tables(Split::valid).size(), 1U);
  for (const char* same : {"a.tif", "./x/../a.tif", "link.tif"}) {
    fs::create_directories(dir_ / "x");
    touch(dir_ / "valid.csv", std::string("raw\nc.tif\n") + same + "\n");
    EXPECT_NE(refusal().find("this image is for training and for validation"), std::string::npos)
        << refusal();
    EXPECT_EQ(of_tables(Split::valid, ", allow_shared: true").size(), 2U);
    for (const char* fold : {"0", "1", "2"}) {  // its rows go together
      const std::string more = std::string(", folds: 3, fold: ") + fold;
      std::set<std::string> trained;
      for (const data::Sample& sample : of_tables(Split::train, more))
        trained.insert(data::file_of_image(sample));
      for (const data::Sample& sample : of_tables(Split::valid, more))
        EXPECT_EQ(trained.count(data::file_of_image(sample)), 0U) << sample.id;
    }
  }
  touch(dir_ / "train.csv", "raw,scene,timepoint\na.tif,0,1\na.tif,1,1\n");
  touch(dir_ / "valid.csv", "raw,scene,timepoint\na.tif,2,1\n");  // another scene
  EXPECT_EQ(of_tables(Split::valid).size(), 1U);
  touch(dir_ / "valid.csv", "raw,scene,timepoint\na.tif,1,1\n");
  EXPECT_NE(refusal().find("a.tif: this image"), std::string::npos);
  touch(dir_ / "valid.csv", "raw,scene,timepoint\na.tif,,1\n");  // the first of them
  EXPECT_NE(refusal().find("a.tif: this image"), std::string::npos);
}

TEST_F(SharedImages, FilesOfASetAreOneImage) {
  copy_set(dir_ / "set");
  for (const char* name : {"n.hdr", "n.img", "m.hdr", "m.img"}) touch(dir_ / name);
  for (const auto& [train, valid] :
       {std::pair{"set/split_t0_c0.ome.tif", "set/split_t1_c1.ome.tif"},
        {"set/split_t1_c0.ome.tif", "set/split_t1_c1.ome.tif"},
        {"n.hdr", "n.img"}}) {
    touch(dir_ / "train.csv", std::string("raw\n") + train + "\n");
    touch(dir_ / "valid.csv", std::string("raw\n") + valid + "\n");
    EXPECT_NE(refusal().find("for training and for validation"), std::string::npos) << refusal();
  }
  touch(dir_ / "valid.csv", "raw\nm.img\n");
  EXPECT_EQ(of_tables(Split::valid).size(), 1U);
}

TEST_F(SharedImages, FoldsAndSharesKeepASetTogether) {
  for (const char* set : {"a", "b", "c"}) {
    copy_set(dir_ / set);
  }
  std::string rows = "raw\n";
  for (const char* set : {"a", "b", "c"})
    for (const char* part : {"split_t0_c0", "split_t1_c1", "split_t0_c1"})
      rows += std::string(set) + "/" + part + ".ome.tif\n";
  touch(dir_ / "train.csv", rows);
  for (int fold = 0; fold < 3; ++fold) {
    const std::string more = ", folds: 3, fold: " + std::to_string(fold);
    std::set<std::string> held_out;
    for (const data::Sample& sample : of_tables(Split::valid, more))
      held_out.insert(fs::path(sample.id).parent_path().string());
    EXPECT_EQ(held_out.size(), 1U);
    for (const data::Sample& sample : of_tables(Split::train, more))
      EXPECT_EQ(held_out.count(fs::path(sample.id).parent_path().string()), 0U);
  }
  std::vector<data::Sample> all = of_tables(Split::train, ", allow_shared: true");
  const auto valid = data::hold_out(all, 0.5, Split::valid, "x");
  const auto train = data::hold_out(all, 0.5, Split::train, "x");
  EXPECT_EQ(valid.size() + train.size(), 9U);
  EXPECT_EQ(valid.size() % 3, 0U);
}

TEST_F(SharedImages, SharesLeaveAnImageOnEachSide) {
  std::vector<data::Sample> all(2);
  for (const char* name : {"a.tif", "b.tif"}) touch(dir_ / name);
  all[0].id = all[0].sources["raw"].path = dir_ / "a.tif";
  all[1].id = all[1].sources["raw"].path = dir_ / "b.tif";
  EXPECT_EQ(data::hold_out(all, 0.2, Split::train, "x")[0].id, all[0].id);
  EXPECT_EQ(data::hold_out(all, 0.2, Split::valid, "x")[0].id, all[1].id);
  EXPECT_EQ(data::hold_out(all, 0, Split::train, "x").size(), 2U);
  EXPECT_NE(
      message_of([&] { data::hold_out(all, 0, Split::valid, "x"); }).find("limit_val_batches=0"),
      std::string::npos);
  // An only image is both, and that is said
  all.pop_back();
  testing::internal::CaptureStderr();
  EXPECT_EQ(data::hold_out(all, 0.2, Split::train, "x").size(), 1U);
  EXPECT_EQ(data::hold_out(all, 0.2, Split::valid, "x").size(), 1U);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the only image"), std::string::npos);
}

}  // namespace
}  // namespace cytra
