#include "training/trainer/checkpoint_writer.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "io/safetensors.h"
#include "tests/support/tmp_dir.h"

namespace cytra::training {
namespace {

Snapshot snapshot_of(int64_t values) {
  Snapshot snapshot;
  snapshot.tensors["a"] = at::arange(values, at::kFloat);
  return snapshot;
}

int64_t values_in(const std::string& path) {
  return io::SafetensorsFile(path).tensors().at("a").shape[0];
}

TEST(CheckpointWriter, OneFileUnderSeveralNames) {
  const test::TmpDir dir;
  CheckpointWriter writer;
  Snapshot snapshot = snapshot_of(5);
  write_file(dir / "stale", "x");
  writer.write(snapshot, {dir / "best", dir / "last"}, {dir / "stale", dir / "last"});
  writer.wait();
  EXPECT_EQ(std::filesystem::hard_link_count(dir / "best"), 2U);
  EXPECT_FALSE(std::filesystem::exists(dir / "stale"));
  snapshot = snapshot_of(6);
  writer.write(snapshot, {dir / "last"}, {});
  writer.wait();
  EXPECT_EQ(values_in(dir / "best"), 5);
  EXPECT_EQ(values_in(dir / "last"), 6);
  writer.write(snapshot, {dir / "nowhere/last"}, {dir / "best"});
  EXPECT_THROW(writer.wait(), Error);
  EXPECT_TRUE(std::filesystem::exists(dir / "best"));  // its better is not on the disk
  writer.wait();                                       // said once
}

TEST(CheckpointWriter, APathThatComesAgainIsWrittenLast) {
  const test::TmpDir dir;
  make_folders(dir / "last");  // no file can take its place
  CheckpointWriter writer;
  writer.write(snapshot_of(5), {dir / "last", dir / "best", dir / "last"}, {});
  EXPECT_THROW(writer.wait(), Error);
  EXPECT_EQ(values_in(dir / "best"), 5);
}

TEST(CheckpointWriter, AFailureIsAWarningWhereAllCanUndoIt) {
  const test::TmpDir dir;
  CheckpointWriter writer;
  std::string undone;
  const std::vector<std::function<void()>> undo{[&] { undone += "1"; }, [&] { undone += "2"; }};
  const std::vector<std::string> nowhere{dir / "nowhere/best", dir / "nowhere/last"};
  writer.write(snapshot_of(5), {dir / "best", dir / "last"}, {}, undo);
  EXPECT_EQ(undone, "");
  testing::internal::CaptureStderr();
  writer.write(snapshot_of(5), nowhere, {}, undo);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the training goes on without this checkpoint"), std::string::npos) << said;
  EXPECT_EQ(undone, "21") << "the last first";
  writer.write(snapshot_of(5), nowhere, {}, {undo[0]});  // one of them can't
  EXPECT_THROW(writer.wait(), Error);
  EXPECT_EQ(undone, "21");
}

}  // namespace
}  // namespace cytra::training
