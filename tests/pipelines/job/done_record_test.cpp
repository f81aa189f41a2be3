#include "pipelines/job/done_record.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/own_files.h"
#include "io/fingerprint.h"
#include "io/image.h"
#include "pipelines/job/stamp.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
using inference::ResultFiles;
using pipelines::DoneImage;
using pipelines::DoneRecord;

TEST(DoneRecord, KnowsWhatIsDoneWhileItsFilesAreThere) {
  const test::TmpDir dir;
  const ResultFiles files{{"prediction", dir / "a\xe4.tif"}, {"overlay", dir / "a.png"}};
  keep_own_files(dir.path());
  for (const auto& [kind, path] : files) write_file(path, "x");
  { DoneRecord(dir.path(), "predictions", 0).add({"a", "in/a\xe4.tif", "stamp 1", files}); }
  std::ofstream(dir / "predictions.jsonl", std::ios::app) << "{\"name\": \"b\", \"sta";  // killed
  { DoneRecord(dir.path(), "predictions", 0).add({"c", "in/c.tif", "stamp 1", {files[0]}}); }
  DoneRecord record(dir.path(), "predictions", 1);
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

/// A stranger can make the sum, too.
std::string with_check(const std::string& line) {
  return line.substr(0, line.size() - 1) + ",\"check\":\"" + io::fingerprint(line) + "\"}\n";
}

TEST(DoneRecord, ALineOfAStrangerIsData) {  // --resume removed ../../victim
  const test::TmpDir dir;
  const std::string folder = dir / "out";
  std::filesystem::create_directories(folder + "/inside");
  std::filesystem::create_directory_symlink(dir.path(), folder + "/link");
  keep_own_files(dir.path());
  write_file(dir / "precious", "x");  // of another run of this process
  for (const char* path : {"out/mine", "out/inside/f"}) std::ofstream(dir / path) << "x";
  std::vector<std::string> lines;
  for (const std::string name : {"../precious",
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
    lines.push_back("{\"x\":\"" + name + "\"}");
  for (const std::string& files :
       {"{\"x\":\"" + (dir / "precious") + "\"}", std::string("[1,2]"), std::string("{}")})
    lines.push_back(files);
  for (std::string& files : lines)
    files = with_check(R"({"name":"img","image":"i","stamp":"s","files":)" + files + "}");
  for (const char* line : {R"({"name":3})", "[]", "null", "{}"}) lines.push_back(with_check(line));
  std::string text;
  for (const std::string& line : lines) {
    std::ofstream(folder + "/predictions.jsonl") << (text += line);
    DoneRecord record(folder, "predictions");
    EXPECT_TRUE(record.outdated("img", {}).empty()) << line;
    EXPECT_EQ(record.find("img", "s"), std::nullopt) << line;
    record.remove_outdated("img", {});
  }
  for (const char* path : {"precious", "out/mine", "out/inside/f"})
    EXPECT_EQ(read_file(dir / path), "x") << path;
}

TEST(DoneRecord, TheNewestLineCountsWhoeverWroteIt) {
  const test::TmpDir dir;
  const auto add = [&](int64_t rank, const std::string& stamp) {
    DoneRecord(dir.path(), "predictions", rank).add({"a", "a.tif", stamp, {}});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a file system's clock
  };
  add(0, "first");
  add(1, "second");
  EXPECT_TRUE(DoneRecord(dir.path(), "predictions").has("a", "second"));
  add(0, "third");
  EXPECT_TRUE(DoneRecord(dir.path(), "predictions").has("a", "third"));
}

TEST(DoneRecord, FilesInFoldersAreRemovedWithThem) {
  const test::TmpDir dir;
  keep_own_files(dir.path());
  std::filesystem::create_directories(dir / "masks/front");
  const ResultFiles files{{"mask", dir / "masks/front/a.png"}};
  write_file(files[0].second, "x");
  { DoneRecord(dir.path(), "segmented").add({"front/a", "in/a.png", "s", files}); }
  DoneRecord record(dir.path(), "segmented");
  EXPECT_EQ(record.find("front/a", "s"), files);
  std::filesystem::rename(dir / "masks/front", dir / "kept");
  std::filesystem::create_directory_symlink(dir / "kept", dir / "masks/front");
  EXPECT_EQ(record.find("front/a", "s"), std::nullopt) << "behind a link";
  record.remove_outdated("front/a", {});
  EXPECT_TRUE(std::filesystem::exists(dir / "kept/a.png"));
  std::filesystem::remove(dir / "masks/front");
  std::filesystem::rename(dir / "kept", dir / "masks/front");
  record.remove_outdated("front/a", files);
  EXPECT_EQ(record.find("front/a", "s"), files);
  record.remove_outdated("front/a", {});
  EXPECT_FALSE(std::filesystem::exists(dir / "masks/front"));
  EXPECT_TRUE(std::filesystem::exists(dir / "masks"));
}

TEST(DoneRecord, AFileOfAnotherImageIsNotOutdated) {
  const test::TmpDir dir;
  keep_own_files(dir.path());
  const ResultFiles of_b{{"prediction", dir / "b.tif"}};
  write_file(dir / "b.tif", "x");
  { DoneRecord(dir.path(), "predictions", 0).add({"b", "in/b.tif", "s", of_b}); }
  {  // a forged line behind it
    DoneRecord(dir.path(), "predictions", 0).add({"a", "in/a.tif", "s", of_b});
  }
  DoneRecord record(dir.path(), "predictions", 0);
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

TEST(DoneRecord, ContentIsThatOfAllFilesAndOfTheirLastChange) {
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

TEST(DoneRecord, TellsWhatOtherProcessesHaveDoneSince) {
  const test::TmpDir dir;
  DoneRecord other(dir.path(), "predictions", 1);
  other.add({"old", "in/old.tif", "s", {{"prediction", dir / "old.tif"}}});
  DoneRecord first(dir.path(), "predictions", 0);
  first.add({"own", "in/own.tif", "s", {{"prediction", dir / "own.tif"}}});
  other.add({"new", "in/new.tif", "s", {{"prediction", dir / "new.tif"}}});
  other.add_failed("in/bad.tif", 2);
  const DoneRecord::Others others = first.of_others();
  EXPECT_EQ(others.done, 1);
  EXPECT_EQ(others.files, (ResultFiles{{"prediction", dir / "new.tif"}}));
  EXPECT_EQ(others.failed, (std::vector<std::pair<std::string, int>>{{"in/bad.tif", 2}}));
}

TEST(DoneRecord, ATimeLapseHasSeveralFilesOfAKindAndItsPartsAreGone) {
  const test::TmpDir dir;
  DoneRecord other(dir.path(), "predictions", 1);
  DoneRecord first(dir.path(), "predictions", 0);
  for (const char* name : {"a_t0.png", "a_t1.png", "a.tif"}) write_file(dir / name, "x");
  for (const char* name : {"a_t0", "a_t1"})
    other.add({name,
               "in/a",
               "s",
               {{"prediction", dir / name + ".tif"}, {"overlay", dir / name + ".png"}}});
  const ResultFiles whole{
      {"overlay", dir / "a_t0.png"}, {"overlay", dir / "a_t1.png"}, {"prediction", dir / "a.tif"}};
  other.add({"a", "in/a", "s", whole, "", 0});
  EXPECT_EQ(DoneRecord(dir.path(), "predictions", 2).find("a", "s"), whole);
  const DoneRecord::Others others = first.of_others();
  EXPECT_EQ(others.done, 2);
  for (const auto& [kind, path] : others.files) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(std::count(others.files.begin(), others.files.end(), whole[2]), 1);
}

}  // namespace
}  // namespace cytra
