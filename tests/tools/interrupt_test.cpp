// Ctrl-C at any moment: the work would take minutes, the programs end soon and leave nothing half
// done.
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class Interrupt : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + at("samples") +
                               "' --train 2 --valid 1 --test 0 --size 1200 --seed 3");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  /// What a test that failed has left: the next one would wait for its own run there.
  void SetUp() override { fs::remove_all(at("run")); }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static std::string train(const std::string& more) {
    return "\"$BIN/train\" experiment=im2im/segmentation trainer.accelerator=cpu "
           "trainer.steps_per_epoch=null patch_shape=[32,32] trainer.max_epochs=100000 "
           "task.inference_args.overlap=0.97 'data.path=" +
           at("samples") + "' 'paths.output_dir=" + at("run") + "' " + more;
  }
  /// Ctrl-C after some seconds; killed, with another exit code, where it does not end.
  static Outcome interrupted(const std::string& after_s, const std::string& command) {
    return shell("timeout --preserve-status -s INT -k 30 " + after_s + " " + command);
  }
  static test::TmpDir* dir_;
};
test::TmpDir* Interrupt::dir_ = nullptr;

TEST_F(Interrupt, EndsATrainingAtAnyMomentOfItsStart) {
  for (const char* after_s : {"0.1", "0.5", "1", "1.7", "3"}) {
    const Outcome outcome = interrupted(after_s, train(""));
    EXPECT_EQ(outcome.code, 130) << after_s << ": " << outcome.err;
    EXPECT_FALSE(fs::exists(at("run"))) << after_s << ": " << outcome.err;
  }
}

TEST_F(Interrupt, EndsASanityValidationInTheMidstOfAnImage) {
  const Outcome outcome =
      shell(train("") + " & pid=$!; while ! grep -q parameters '" + at("run/train.log") +
            "' 2>/dev/null && kill -0 $pid; do sleep 0.05; done; sleep 0.3; "
            "kill -TERM $pid; wait $pid");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_NE(outcome.err.find("interrupted before the first step; nothing is kept"),
            std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(at("run")));
}

TEST_F(Interrupt, EndsAValidationOfTheFirstEpochAndSavesTheState) {
  // The checkpoint of the first step is there while its epoch is validated.
  const Outcome outcome =
      shell(train("trainer.num_sanity_val_steps=0 "
                  "callbacks.model_checkpoint.every_n_train_steps=1") +
            " & pid=$!; while ! [ -e '" + at("run/checkpoints/last.ckpt") +
            "' ] && kill -0 $pid; do sleep 0.05; done; sleep 1; kill -TERM $pid; wait $pid");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_NE(outcome.err.find("interrupted at step"), std::string::npos) << outcome.err;
  EXPECT_TRUE(fs::exists(at("run/checkpoints/last.ckpt"))) << outcome.err;
  fs::remove_all(at("run"));
}

TEST_F(Interrupt, EndsAPredictionAtAnyMomentOfItsStart) {
  const Outcome trained = shell(train("trainer.max_steps=1 trainer.limit_val_batches=0"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* after_s : {"0.1", "0.4", "0.8", "1.5"}) {
    const Outcome outcome = interrupted(after_s,
                                        "\"$BIN/predict\" trainer.accelerator=cpu "
                                        "inference_args.roi_size=[32,32] "
                                        "inference_args.overlap=0.97 'checkpoint.ckpt_path=" +
                                            at("run/checkpoints/last.ckpt") +
                                            "' 'data.path=" + at("samples/valid.csv") +
                                            "' 'paths.output_dir=" + at("out") + "'");
    EXPECT_EQ(outcome.code, 130) << after_s << ": " << outcome.err;
    if (!fs::exists(at("out"))) continue;
    for (const auto& entry : fs::recursive_directory_iterator(at("out")))
      EXPECT_NE(entry.path().extension(), ".tif") << after_s << ": " << entry.path();
    fs::remove_all(at("out"));
  }
  fs::remove_all(at("run"));
}

TEST_F(Interrupt, EndsAVideoThatDoesNotComeFromItsPipe) {
  const Outcome outcome =
      shell("mkfifo '" + at("pipe.mkv") +
            "'; timeout --preserve-status -s TERM -k 30 2 \"$BIN/process_video\" '" +
            at("pipe.mkv") + "' '" + at("out.mp4") +
            "' trainer.accelerator=cpu 'checkpoint.ckpt_path=" CYTRA_SOURCE_DIR
            "/tests/golden/checkpoints/format1_2d.ckpt'");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_FALSE(fs::exists(at("out.mp4")));
}

}  // namespace
}  // namespace cytra
