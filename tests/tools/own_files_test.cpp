// What each program does where a file of the user's has the name of a result.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/strings.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

constexpr const char* kTiny =
    " experiment=im2im/segmentation trainer.accelerator=cpu patch_shape=[32,32] "
    "model.filters=[4,8,8] data.num_workers=0 performance.num_threads=1 ";

/// Two data sets whose files have the same names, and a training on the first.
class OwnFilesOfPrograms : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    for (const char* seed : {"1", "2"}) {
      const Outcome made = shell("\"$BIN/generate_samples\" --output '" + at("samples") + seed +
                                 "' --train 1 --valid 1 --test 2 --size 64 --seed " + seed);
      ASSERT_EQ(made.code, 0) << made.err;
    }
    const Outcome trained = train("samples1", "trainer.max_steps=1");
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static Outcome train(const std::string& set, const std::string& more) {
    return shell("\"$BIN/train\"" + std::string(kTiny) + "'data.path=" + at(set) +
                 "' 'paths.output_dir=" + at("run") + "' " + more);
  }
  static Outcome run(const std::string& program, const std::string& more) {
    return shell("cd '" + at("") + "'; \"$BIN/" + program + "\" " + more);
  }
  static std::string predict(const std::string& path, const std::string& more) {
    return "checkpoint.ckpt_path=run trainer.accelerator=cpu data.path=" + path +
           " paths.output_dir=out " + more;
  }
  /// A file of the user's.
  static void put(const std::string& name) { std::ofstream(at(name)) << "mine"; }
  static test::TmpDir* dir_;
};
test::TmpDir* OwnFilesOfPrograms::dir_ = nullptr;

TEST_F(OwnFilesOfPrograms, PredictGoesOnBesideFilesOfOthers) {
  const std::string image = "samples1/images/test_0000_raw.ome.tif";
  ASSERT_EQ(run("predict", predict(image, "")).code, 0);
  // An input among the results, a table of the user's, a result that was corrected by hand.
  fs::copy(at("samples1/images/test_0001_raw.ome.tif"), at("out/own.ome.tif"));
  fs::create_hard_link(at("out/own.ome.tif"), at("other.ome.tif"));
  const std::string before = read_file(at("out/own.ome.tif"));
  Outcome outcome = run("predict", predict("other.ome.tif", "--resume"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  outcome = run("predict", predict("out/own.ome.tif", "--resume"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("own.ome.tif: is there already"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_file(at("out/own.ome.tif")), before);
  EXPECT_FALSE(fs::exists(at("out/own_overlay.png")));
  put("out/test_0000_raw.csv");
  outcome = run("predict", predict(image, "--resume predict.measurements=true"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(read_file(at("out/test_0000_raw.csv")), "mine");
  // With other settings its own results are made again, those that somebody changed are not.
  outcome = run("predict", predict(image, "--resume predict.threshold=0.4"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  put("out/test_0000_raw.ome.tif");
  outcome = run("predict", predict(image, "--resume predict.threshold=0.3"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(read_file(at("out/test_0000_raw.ome.tif")), "mine");
}

TEST_F(OwnFilesOfPrograms, OutputsThatAreNamedAreNew) {
  put("taken");
  put("taken.json");
  put("taken.mp4");
  for (const std::string& command :
       {std::string("export_model checkpoint.ckpt_path=run output=taken"),
        std::string("benchmark_performance --ckpt run --output taken.json"),
        std::string("generate_samples --frames 2 --video taken.mp4")}) {
    const std::size_t space = command.find(' ');
    const Outcome outcome = run(command.substr(0, space), command.substr(space));
    EXPECT_EQ(outcome.code, 2) << command << outcome.err;
    EXPECT_NE(outcome.err.find("is there already"), std::string::npos) << outcome.err;
  }
  fs::create_directories(at("mine"));
  put("mine/train.csv");
  const Outcome outcome = run("generate_samples", "--output mine --train 1 --size 64");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_FALSE(fs::exists(at("mine/images"))) << "half written";
  for (const char* name : {"taken", "taken.json", "taken.mp4", "mine/train.csv"})
    EXPECT_EQ(read_file(at(name)), "mine");
  const Outcome again =
      run("generate_samples", "--output samples1 --train 1 --valid 1 --test 2 --size 64 --seed 1");
  EXPECT_EQ(again.code, 0) << "the same data set" << again.err;
}

TEST_F(OwnFilesOfPrograms, ATrainingGoesOnWithItsOwnDataAlone) {
  for (const char* way : {"checkpoint.ckpt_path=last", "checkpoint.autoresume=true"}) {
    const Outcome other = train("samples2", std::string("trainer.max_steps=2 ") + way);
    EXPECT_EQ(other.code, 2) << other.err;
    EXPECT_NE(other.err.find("samples1 (1 images), now " + at("samples2")), std::string::npos)
        << other.err;
    EXPECT_FALSE(fs::exists(at("run-1")));
  }
  // A copy elsewhere is the same data.
  fs::copy(at("samples1"), at("moved"), fs::copy_options::recursive);
  Outcome same = train("moved", "trainer.max_steps=1 checkpoint.ckpt_path=last");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_NE(same.err.find("nothing was left to do"), std::string::npos) << same.err;
  same = train("samples1", "trainer.max_steps=2 checkpoint.ckpt_path=last 'model.filters=[4,4,8]'");
  EXPECT_EQ(same.code, 2) << same.err;
  // A file that the user names is taken, with a word.
  const Outcome named =
      train("samples2", "trainer.max_steps=2 'checkpoint.ckpt_path=" + at("run") + "'");
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_NE(named.err.find("a training on the data of"), std::string::npos) << named.err;
}

TEST_F(OwnFilesOfPrograms, ARunIsNamedByItsFolder) {
  for (const char* name : {"last.ckpt", "best.ckpt"})
    EXPECT_TRUE(fs::exists(at("run/checkpoints/") + name)) << name;
  const Outcome made = run("train", std::string(kTiny) + "data.path=samples1 trainer.max_steps=1");
  ASSERT_EQ(made.code, 0) << made.err;
  const Outcome newest = run("predict",
                             "checkpoint.ckpt_path=best trainer.accelerator=cpu "
                             "data.path=samples1/images/test_0000_raw.ome.tif");
  EXPECT_EQ(newest.code, 0) << newest.err;
  EXPECT_NE(newest.err.find("checkpoint.ckpt_path=best: logs/train/runs"), std::string::npos)
      << newest.err;
  const Outcome model =
      run("export_model", "checkpoint.ckpt_path=run/checkpoints output=m.safetensors");
  EXPECT_EQ(model.code, 0) << model.err;
  fs::create_directories(at("nothing"));
  const Outcome none =
      run("predict", "paths.log_dir=nothing checkpoint.ckpt_path=last data.path=samples1");
  EXPECT_EQ(none.code, 2) << none.err;
}

TEST_F(OwnFilesOfPrograms, AFolderInTheNameOfACheckpointIsMade) {
  const Outcome outcome =
      shell("\"$BIN/train\"" + std::string(kTiny) + "'data.path=" + at("samples1") +
            "' 'paths.output_dir=" + at("deep") +
            "' trainer.max_steps=2 "
            "'callbacks.model_checkpoint.filename=\"by/{epoch}\"'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(fs::is_empty(at("deep/checkpoints/by")));
}

TEST_F(OwnFilesOfPrograms, AFailedPredictLeavesNoFolder) {
  put("broken.tif");
  const Outcome outcome = run("predict",
                              "checkpoint.ckpt_path=run trainer.accelerator=cpu "
                              "data.path=broken.tif paths.output_dir=failed");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_FALSE(fs::exists(at("failed")));
}

}  // namespace
}  // namespace cytra
