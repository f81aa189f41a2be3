#include "app/predict_record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
using app::PredictedFiles;
using app::PredictRecord;

TEST(PredictRecord, KnowsWhatIsDoneWhileItsFilesAreThere) {
  const test::TmpDir dir;
  const PredictedFiles files{{"prediction", dir / "a\xe4.tif"}, {"overlay", dir / "a.png"}};
  for (const auto& [kind, path] : files) write_file(path, "x");
  { PredictRecord(dir.path(), 0).add("a", "in/a\xe4.tif", "stamp 1", files); }
  std::ofstream(dir / "predictions.jsonl", std::ios::app) << "{\"name\": \"b\", \"sta";  // killed
  { PredictRecord(dir.path(), 0).add("c", "in/c.tif", "stamp 1", {}); }
  PredictRecord record(dir.path(), 1);
  EXPECT_TRUE(record.find("c", "stamp 1"));
  EXPECT_EQ(record.find("a", "stamp 1"), files);
  EXPECT_EQ(record.find("a", "stamp 2"), std::nullopt);
  EXPECT_EQ(record.find("b", "stamp 1"), std::nullopt);
  EXPECT_EQ(record.outdated("a", {files[0]}), (PredictedFiles{files[1]}));
  EXPECT_TRUE(record.outdated("new", files).empty());
  std::ofstream(files[0].second, std::ios::trunc).close();
  EXPECT_EQ(record.find("a", "stamp 1"), std::nullopt) << "an empty file is no result";
  write_file(files[0].second, "x");
  std::filesystem::remove(files[1].second);
  EXPECT_EQ(record.find("a", "stamp 1"), std::nullopt);
}

TEST(PredictRecord, TellsWhatOtherProcessesHaveDoneSince) {
  const test::TmpDir dir;
  PredictRecord other(dir.path(), 1);
  other.add("old", "in/old.tif", "s", {{"prediction", dir / "old.tif"}});
  PredictRecord first(dir.path(), 0);
  first.add("own", "in/own.tif", "s", {{"prediction", dir / "own.tif"}});
  other.add("new", "in/new.tif", "s", {{"prediction", dir / "new.tif"}});
  other.add_failed("in/bad.tif", 2);
  const PredictRecord::Others others = first.of_others();
  EXPECT_EQ(others.done, 1);
  EXPECT_EQ(others.files, (PredictedFiles{{"prediction", dir / "new.tif"}}));
  EXPECT_EQ(others.failed, (std::vector<std::pair<std::string, int>>{{"in/bad.tif", 2}}));
}

TEST(PredictRecord, ALapseHasSeveralFilesOfAKindAndItsPartsAreGone) {
  const test::TmpDir dir;
  PredictRecord other(dir.path(), 1);
  PredictRecord first(dir.path(), 0);
  for (const char* name : {"a_t0.png", "a_t1.png", "a.tif"}) write_file(dir / name, "x");
  for (const char* name : {"a_t0", "a_t1"})
    other.add(
        name, "in/a", "s", {{"prediction", dir / name + ".tif"}, {"overlay", dir / name + ".png"}});
  const PredictedFiles whole{
      {"overlay", dir / "a_t0.png"}, {"overlay", dir / "a_t1.png"}, {"prediction", dir / "a.tif"}};
  other.add("a", "in/a", "s", whole, 0);
  EXPECT_EQ(PredictRecord(dir.path(), 2).find("a", "s"), whole);
  const PredictRecord::Others others = first.of_others();
  EXPECT_EQ(others.done, 2);
  for (const auto& [kind, path] : others.files) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(std::count(others.files.begin(), others.files.end(), whole[2]), 1);
}

}  // namespace
}  // namespace cytra
