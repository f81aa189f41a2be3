#include "pipelines/predict/record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/own_files.h"
#include "io/image.h"
#include "pipelines/job/stamp.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
using inference::ResultFiles;
using pipelines::PredictRecord;

TEST(PredictRecord, KnowsWhatIsDoneWhileItsFilesAreThere) {
  const test::TmpDir dir;
  const ResultFiles files{{"prediction", dir / "a\xe4.tif"}, {"overlay", dir / "a.png"}};
  keep_own_files(dir.path());
  for (const auto& [kind, path] : files) write_file(path, "x");
  { PredictRecord(dir.path(), 0).add("a", "in/a\xe4.tif", "stamp 1", files); }
  std::ofstream(dir / "predictions.jsonl", std::ios::app) << "{\"name\": \"b\", \"sta";  // killed
  { PredictRecord(dir.path(), 0).add("c", "in/c.tif", "stamp 1", {files[0]}); }
  PredictRecord record(dir.path(), 1);
  EXPECT_TRUE(record.find("c", "stamp 1"));
  EXPECT_EQ(record.find("a", "stamp 1"), files);
  EXPECT_EQ(record.find("a", "stamp 2"), std::nullopt);
  EXPECT_EQ(record.find("b", "stamp 1"), std::nullopt);
  EXPECT_EQ(record.outdated("a", {files[0]}), (ResultFiles{files[1]}));
  EXPECT_TRUE(record.outdated("new", files).empty());
  std::ofstream(files[0].second, std::ios::trunc).close();
  EXPECT_EQ(record.find("a", "stamp 1"), std::nullopt) << "an empty file is no result";
  write_file(files[0].second, "x");
  std::filesystem::remove(files[1].second);
  EXPECT_EQ(record.find("a", "stamp 1"), std::nullopt);
}

TEST(PredictRecord, ALineOfAStrangerIsData) {  // --resume removed ../../victim
  const test::TmpDir dir;
  const std::string folder = dir / "out";
  std::filesystem::create_directories(folder + "/inside");
  std::filesystem::create_directory_symlink(dir.path(), folder + "/link");
  for (const char* path : {"precious", "out/mine", "out/inside/f"})
    std::ofstream(dir / path) << "x";
  std::string lines;
  for (const char* name : {"../precious",
                           "",
                           ".",
                           "..",
                           "mine",
                           "inside/f",
                           "inside",
                           "link",
                           "link/precious",
                           "a/../../precious",
                           "other.tif"})
    lines += std::string("{\"name\":\"img\",\"image\":\"i\",\"stamp\":\"s\",\"files\":{\"x\":\"") +
             name + "\"}}\n";
  lines += "{\"name\":\"img\",\"stamp\":\"s\",\"files\":{\"x\":\"" + (dir / "precious") + "\"}}\n";
  lines +=
      "{\"name\":\"img\",\"stamp\":\"s\",\"files\":[1,2]}\n{\"name\":\"img\",\"stamp\":\"s\","
      "\"files\":{}}\n{\"name\":3}\n[]\nnull\n";
  for (std::size_t end = lines.find('\n'); end != std::string::npos;
       end = lines.find('\n', end + 1)) {
    std::ofstream(folder + "/predictions.jsonl") << lines.substr(0, end + 1);
    PredictRecord record(folder, 0);
    EXPECT_TRUE(record.outdated("img", {}).empty()) << lines.substr(0, end);
    EXPECT_EQ(record.find("img", "s"), std::nullopt) << lines.substr(0, end);
  }
}

TEST(PredictRecord, AFileOfAnotherImageIsNotOutdated) {
  const test::TmpDir dir;
  keep_own_files(dir.path());
  const ResultFiles of_b{{"prediction", dir / "b.tif"}};
  write_file(dir / "b.tif", "x");
  { PredictRecord(dir.path(), 0).add("b", "in/b.tif", "s", of_b); }
  {  // a forged line behind it
    PredictRecord(dir.path(), 0).add("a", "in/a.tif", "s", of_b);
  }
  PredictRecord record(dir.path(), 0);
  EXPECT_EQ(record.find("b", "s"), of_b);
  EXPECT_TRUE(record.outdated("a", {}).empty());
}

TEST(Stamp, IsOfEveryColumnButTheTargets) {
  const test::TmpDir dir;
  data::Sample sample;
  for (const char* key : {"raw", "dna", "seg"}) {
    sample.sources[key].path = dir / key;
    write_file(dir / key, key);
  }
  const auto stamp = [&] {
    return pipelines::stamp_of(sample, pipelines::content_of(sample, "seg"), "settings", "seg");
  };
  const std::string before = stamp();
  write_file(dir / "seg", "another");
  sample.sources["seg"].selection.channels = {1};
  EXPECT_EQ(stamp(), before);
  sample.sources["dna"].selection.channels = {1};
  EXPECT_NE(stamp(), before);
  sample.sources["dna"].selection.channels = {};
  EXPECT_EQ(stamp(), before);
  write_file(dir / "dna", "another");
  EXPECT_NE(stamp(), before);
}

TEST(PredictRecord, ContentIsThatOfAllFilesAndOfTheirLastChange) {
  const test::TmpDir dir;
  data::Sample sample;
  data::Source& source = sample.sources["raw"];
  std::string before;
  const auto is_changed = [&] {
    const std::string now = pipelines::content_of(sample);
    return now != std::exchange(before, now);
  };
  const auto change = [](const std::string& path) {  // size and time are kept
    const auto time = std::filesystem::last_write_time(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
    file.close();
    std::filesystem::last_write_time(path, time);
  };
  std::ofstream(dir / "a.tif") << "12345";
  source.path = dir / "a.tif";
  EXPECT_TRUE(is_changed());
  EXPECT_FALSE(is_changed());
  change(source.path);
  EXPECT_TRUE(is_changed()) << "size and time were kept";
  io::Image image;
  image.shape = {1, 2, 3, 4};
  image.pixels.resize(24);
  io::write_nifti(dir / "n.nii", image);
  std::string nifti = read_file(dir / "n.nii");
  nifti.replace(344, 4, std::string("ni1\0", 4));  // in two files
  std::ofstream(dir / "n.hdr") << nifti;
  std::ofstream(dir / "n.img") << nifti;
  source.path = dir / "n.hdr";
  EXPECT_TRUE(is_changed());
  EXPECT_FALSE(is_changed());
  change(dir / "n.img");
  EXPECT_TRUE(is_changed()) << "the .img";
  std::filesystem::rename(dir / "n.img", dir / "n.img.gz");
  EXPECT_TRUE(is_changed()) << "the .img.gz";
  const std::string set = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/ome_set";
  std::filesystem::copy(set, dir / "set");
  std::filesystem::create_directory(dir / "dicom");
  std::ofstream(dir / "dicom/1.dcm") << "12345";
  for (const auto& [first, other] :
       std::vector<std::pair<std::string, std::string>>{{"rgb_0.ome.tif", "rgb_1.ome.tif"},
                                                        {"text_0.ome.tif", "text_1.ome.tif"},
                                                        {"text_0.ome.tif", "text.companion.ome"},
                                                        {"slave_1.ome.tif", "master.ome.tif"}}) {
    source.path = dir / ("set/" + first);
    is_changed();
    EXPECT_FALSE(is_changed());
    change(dir / ("set/" + other));
    EXPECT_TRUE(is_changed()) << first << ": " << other;
  }
  source.path = dir / "dicom";
  EXPECT_TRUE(is_changed());
  EXPECT_FALSE(is_changed());
  change(dir / "dicom/1.dcm");
  EXPECT_TRUE(is_changed()) << "a slice";
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
  EXPECT_EQ(others.files, (ResultFiles{{"prediction", dir / "new.tif"}}));
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
  const ResultFiles whole{
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
