#include <map>

#include "tests/data/datamodule_fixture.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

using data::Split;

/// The number of images of each class.
std::map<std::string, int> classes_in(const test::TmpDir& dir,
                                      Split split,
                                      const std::string& more = "") {
  std::map<std::string, int> counts;
  const auto module = make("{_target_: ClassFolderDatamodule, path: '" + dir.path() +
                           "', class_names: [b, a]" + more + "}");
  for (const data::Sample& sample : module->items(split)) {
    EXPECT_NE(sample.id.find("/" + sample.columns.at("label") + "/"), std::string::npos);
    EXPECT_EQ(sample.sources.at("raw").path, sample.id);
    ++counts[sample.columns.at("label")];
  }
  return counts;
}

void fill_class(const std::string& folder, int images) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < images; ++i) touch(folder + "/" + std::to_string(i) + ".png");
}

using Counts = std::map<std::string, int>;

TEST(ClassFolders, AShareOfEachClassIsHeldOut) {
  const test::TmpDir dir;
  fill_class(dir / "a", 10);
  fill_class(dir / "b", 5);
  EXPECT_EQ(classes_in(dir, Split::train), (Counts{{"a", 8}, {"b", 4}}));
  EXPECT_EQ(classes_in(dir, Split::valid), (Counts{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(classes_in(dir, Split::predict), (Counts{{"a", 10}, {"b", 5}}));
  EXPECT_EQ(classes_in(dir, Split::valid, ", folds: 5, fold: 3"), (Counts{{"a", 2}, {"b", 1}}));
}

TEST(ClassFolders, PartsHaveFoldersOfTheirOwn) {
  const test::TmpDir dir;
  for (const char* kind : {"a", "b"}) {
    fill_class(dir / (std::string("train/") + kind), 4);
    fill_class(dir / (std::string("val/") + kind), 2);
    fill_class(dir / (std::string("test/") + kind), 3);
  }
  EXPECT_EQ(classes_in(dir, Split::train), (Counts{{"a", 4}, {"b", 4}}));
  EXPECT_EQ(classes_in(dir, Split::valid), (Counts{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(classes_in(dir, Split::test), (Counts{{"a", 3}, {"b", 3}}));
  EXPECT_EQ(classes_in(dir, Split::train, ", folds: 3"), (Counts{{"a", 4}, {"b", 4}}));
}

TEST(ClassFolders, RefuseWhatTellsNoClasses) {
  const test::TmpDir dir;
  const auto message = [&](const std::string& more = "") {
    return message_of([&] { classes_in(dir, Split::train, more); });
  };
  EXPECT_NE(message().find("no folders in it, expected two or more"), std::string::npos);
  fill_class(dir / "a", 2);
  EXPECT_NE(message().find("one folder in it, a, expected two or more"), std::string::npos);
  fill_class(dir / "b", 0);
  EXPECT_NE(message().find("/b: no images in this folder, expected those of the class b"),
            std::string::npos);
  fill_class(dir / "c", 2);
  EXPECT_NE(message().find("the folders a, b, c, but class_names is [b, a]; expected "
                           "class_names=[a,b,c]"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
