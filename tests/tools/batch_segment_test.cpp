// batch_segment and gpu_profile_batch as a user meets them, with models that need no training.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "io/csv.h"
#include "io/reader.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class BatchSegment : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + at("data") +
                               "' --train 12 --valid 0 --test 0 --size 96 --seed 4");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static std::string models() {
    const std::string folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/models/";
    return " --detector '" + folder + "bright_detector.ts' --segmenter '" + folder +
           "bright_segmenter.ts' --device cpu ";
  }
  static std::string command(const std::string& output, const std::string& more = "") {
    return "\"$BIN/batch_segment\" '" + at("data/train.csv") + "' 'paths.output_dir=" + at(output) +
           "'" + models() + more;
  }
  static std::string value_of(const std::string& text, const std::string& key) {
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with(key + ": ")) return line.substr(key.size() + 2);
    }
    return "";
  }
  static test::TmpDir* dir_;
};
test::TmpDir* BatchSegment::dir_ = nullptr;

TEST_F(BatchSegment, ModesWriteTheSame) {
  std::string expected;
  for (const std::string mode : {"naive", "optimized", "parallel"}) {
    const Outcome done = shell(command(
        mode, "--mode " + mode + " --sam-batch-size 7 --image-batch-size 4 --io-workers 2"));
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(value_of(done.out, "images"), "12");
    EXPECT_NE(done.err.find("is what the others wait for"), std::string::npos) << done.err;
    const std::string table = read_file(at(mode + "/objects.csv"));
    if (expected.empty()) expected = table;
    EXPECT_EQ(table, expected) << mode;
    EXPECT_GT(std::count(table.begin(), table.end(), '\n'), 12);
    EXPECT_EQ(value_of(done.out, "objects"),
              std::to_string(std::count(table.begin(), table.end(), '\n') - 1));
    EXPECT_FALSE(fs::exists(at(mode + "/errors.csv")));
  }
  for (const auto& entry : fs::directory_iterator(at("naive/masks")))
    EXPECT_EQ(read_file(entry.path().string()),
              read_file(at("parallel/masks/") + entry.path().filename().string()));
}

TEST_F(BatchSegment, GoesOnBehindAKill) {
  ASSERT_EQ(shell(command("whole")).code, 0);
  // The models come first: the kill may meet any part of the work, or none.
  for (const char* after : {"0.5", "0.8", "1.2"}) {
    fs::remove_all(at("killed"));
    shell("timeout -s KILL " + std::string(after) + " " + command("killed"));
    std::size_t there = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(at("killed/masks"), ignored)) {
      if (entry.path().extension() != ".png") continue;
      EXPECT_NO_THROW(io::read_image(entry.path().string()));
      ++there;
    }
    const Outcome done = shell(command("killed", "--resume"));
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(read_file(at("killed/objects.csv")), read_file(at("whole/objects.csv"))) << there;
    EXPECT_EQ(read_file(at("killed/instances.json")), read_file(at("whole/instances.json")));
    for (const auto& entry : fs::directory_iterator(at("killed/masks")))
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
  }
  const Outcome again = shell(command("killed", "--resume"));
  EXPECT_NE(again.err.find("12 of them before"), std::string::npos) << again.err;
}

TEST_F(BatchSegment, ABadImageIsARecord) {
  fs::create_directories(at("views/front"));
  fs::create_directories(at("views/left"));
  for (const auto& entry : fs::directory_iterator(at("data/images"))) {
    if (entry.path().string().find("_raw") != std::string::npos)
      fs::copy(entry.path(), at("views/front/") + entry.path().filename().string());
  }
  std::ofstream(at("views/left/bad.png")) << "no image";
  const Outcome done =
      shell("\"$BIN/batch_segment\" '" + at("views") + "' 'paths.output_dir=" + at("bad") +
            "' --object-masks --prometheus '" + at("bad.prom") + "'" + models());
  EXPECT_EQ(done.code, 2) << done.err;
  EXPECT_EQ(value_of(done.out, "images"), "12");
  EXPECT_NE(value_of(done.out, "failed").find("left/bad.png"), std::string::npos);
  const io::Table errors = io::read_table(at("bad/errors.csv"));
  ASSERT_EQ(errors.rows.size(), 1U);
  EXPECT_EQ(errors.rows[0][errors.column("view")], "left");
  EXPECT_NE(
      read_file(at("bad.prom")).find("cytra_images_failed_total{program=\"batch_segment\"} 1"),
      std::string::npos);
  const io::Table objects = io::read_table(at("bad/objects.csv"));
  ASSERT_FALSE(objects.rows.empty());
  EXPECT_EQ(objects.rows[0][objects.column("view")], "front");
  std::size_t masks = 0;
  for (const auto& entry : fs::recursive_directory_iterator(at("bad/objects/front")))
    masks += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(masks, objects.rows.size());
}

TEST_F(BatchSegment, MistakesAreToldBeforeAnyWork) {
  const Outcome none = shell("\"$BIN/batch_segment\" '" + at("nothing") + "'" + models());
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("no such image, folder or table"), std::string::npos) << none.err;
  const Outcome mode = shell(command("x", "--mode fast"));
  EXPECT_EQ(mode.code, 2);
  EXPECT_NE(mode.err.find("segment.mode"), std::string::npos) << mode.err;
  const Outcome view = shell("\"$BIN/batch_segment\" '" + at("data/train.csv") +
                             "' --detector front=a.ckpt left=b.ckpt segmenter.path=x.ckpt");
  EXPECT_EQ(view.code, 2);
  EXPECT_NE(view.err.find("front, left"), std::string::npos) << view.err;
}

TEST_F(BatchSegment, ADetectorThatIsMissingIsToldBeforeAnyWork) {
  fs::create_directories(at("two/front"));
  fs::create_directories(at("two/left"));
  const io::Table table = io::read_table(at("data/train.csv"));
  for (const char* view : {"front", "left"})
    fs::copy(at("data/") + table.rows.at(0).at(0), at("two/") + view + "/a.tif");
  const std::string folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/models/";
  const Outcome done =
      shell("\"$BIN/batch_segment\" '" + at("two") + "' 'paths.output_dir=" + at("early") +
            "' --detector 'front=" + folder + "bright_detector.ts' left=none.ckpt --segmenter '" +
            folder + "bright_segmenter.ts' --device cpu");
  EXPECT_EQ(done.code, 2);
  EXPECT_NE(done.err.find("none.ckpt: no such file"), std::string::npos) << done.err;
  EXPECT_FALSE(fs::exists(at("early/masks")));
}

TEST_F(BatchSegment, ResumeLeavesFoldersOfOthersAlone) {
  fs::create_directories(at("own/masks"));
  std::ofstream(at("own/masks/a.png")) << "the user's";
  const Outcome done = shell(command("own", "--resume"));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("has no results of batch_segment"), std::string::npos) << done.err;
  EXPECT_FALSE(fs::exists(at("own/objects.csv")));
  EXPECT_TRUE(fs::exists(at("own-1/objects.csv")));
  fs::create_directories(at("bare/.hydra"));  // as a run leaves it that is killed early
  EXPECT_EQ(shell(command("bare", "--resume")).code, 0);
  EXPECT_TRUE(fs::exists(at("bare/objects.csv")));
}

TEST_F(BatchSegment, TellsThatThereMayBeMoreObjects) {
  const Outcome some = shell(command("capped", "detector.max_detections=2"));
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_NE(some.err.find("2 objects, as many as detector.max_detections allows"),
            std::string::npos)
      << some.err;
  const Outcome all = shell(command("uncapped"));
  EXPECT_EQ(all.err.find("max_detections"), std::string::npos) << all.err;
}

TEST_F(BatchSegment, PresetsOfGpusAreTakenAndTorchScriptSaysWhatItDoesNotRead) {
  const Outcome done = shell(command("t4", "performance=t4"));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("bright_detector.ts: TorchScript is run as it is"), std::string::npos)
      << done.err;
  EXPECT_NE(done.err.find("bright_segmenter.ts: TorchScript is run as it is"), std::string::npos);
  const Outcome graph = shell(command("graph", "performance.backend=cudagraph"));
  EXPECT_EQ(graph.code, 2);
  EXPECT_NE(graph.err.find("needs a GPU"), std::string::npos) << graph.err;
}

TEST_F(BatchSegment, ItsProfileNamesABatchSizeAndABound) {
  const io::Table table = io::read_table(at("data/train.csv"));
  const std::string image = at("data/") + table.rows.at(0).at(0);
  const Outcome done = shell("\"$BIN/gpu_profile_batch\" --test-image '" + image + "'" + models() +
                             "--benchmark-sam --profile-pipeline batch_sizes=[1,4] seconds=0.02");
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string best = value_of(done.out, "sam_batch_size");
  EXPECT_TRUE(best == "1" || best == "4") << done.out;
  EXPECT_NE(value_of(done.out, "verdict"), "");
  EXPECT_NE(done.err.find("<- optimal"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace cytra
