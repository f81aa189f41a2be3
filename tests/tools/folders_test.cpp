// The folder of a run: taken, alive, or of a run that never began.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/run_lock.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class Folders : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + dir_.path() +
                               "/samples' --train 4 --valid 1 --test 1 --size 64 --seed 5");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  Outcome train(const std::string& more) const {
    return shell(
        "\"$BIN/train\" experiment=im2im/segmentation "
        "trainer.steps_per_epoch=null trainer.accelerator=cpu "
        "trainer.max_steps=1 patch_shape=[32,32] model.filters=[4,8,8] logger=none "
        "data.num_workers=0 'data.path=" +
        dir_.path() + "/samples' 'paths.output_dir=" + run_ + "' " + more);
  }
  test::TmpDir dir_;
  std::string run_ = dir_ / "run";
};

TEST_F(Folders, WhatIsSwitchedOffStaysOffInATakenOne) {
  ASSERT_EQ(train("").code, 0);
  ASSERT_TRUE(fs::exists(run_ + "/checkpoints/last.ckpt"));
  int number = 0;
  for (const char* more : {"trainer.enable_checkpointing=false",
                           "trainer.fast_dev_run=true",
                           "trainer.enable_model_summary=false"}) {
    const Outcome outcome = train(more);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string folder = run_ + "-" + std::to_string(++number);
    EXPECT_NE(outcome.out.find("output_dir: " + folder), std::string::npos) << outcome.out;
    EXPECT_EQ(fs::exists(folder + "/checkpoints"), number == 3) << more;
    EXPECT_EQ(outcome.err.find("\nmodel:\n") != std::string::npos, number != 3) << outcome.err;
  }
}

TEST_F(Folders, WhatKilledOnesLeftIsRemoved) {
  ASSERT_EQ(train("").code, 0);
  const std::string predict =
      "\"$BIN/predict\" 'checkpoint.ckpt_path=" + run_ +
      "/checkpoints/last.ckpt' 'data.path=" + dir_.path() +
      "/samples/test.csv' trainer.accelerator=cpu 'paths.output_dir=" + dir_ / "p" + "'";
  for (const char* name : {"p", "p-1"}) {
    fs::create_directories(dir_ / name);
    write_file(dir_ / name + "/.a.ome.tif.tmp." + boot_id() + "-0123456789abcdef", "half");
    write_file(dir_ / name + "/.notes.tmp.2024-10-01", "kept");
  }
  const Outcome outcome = shell(predict);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"p", "p-1"}) {
    const fs::directory_iterator left(dir_ / name), end;
    EXPECT_EQ(std::distance(left, end), 1) << name;
  }
}

TEST_F(Folders, AMistakeLeavesNone) {
  for (const char* more : {"trainer.val_check_interval=1000",
                           "trainer.limit_train_batches=1 data.batch_size=9 data.drop_last=true",
                           "callbacks.model_checkpoint.filename={epoch:q}"}) {
    const Outcome outcome = train(more);
    EXPECT_EQ(outcome.code, 2) << more << outcome.err;
    EXPECT_FALSE(fs::exists(run_)) << more << outcome.err;
  }
}

TEST_F(Folders, ALivingRunIsNotTakenUp) {
  ASSERT_EQ(train("").code, 0);
  EXPECT_FALSE(fs::exists(run_ + "/.lock"));
  {
    const RunLock lock(run_);
    const Outcome outcome = train("checkpoint.autoresume=true");
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("this run is alive (process " + std::to_string(::getpid())),
              std::string::npos)
        << outcome.err;
    EXPECT_FALSE(fs::exists(run_ + "-1"));
  }
  const Outcome outcome = train("checkpoint.autoresume=true trainer.max_steps=2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("steps: 2"), std::string::npos) << outcome.out;
}

TEST_F(Folders, AnyBytesMakeAName) {
  run_ = dir_ / "k\xe4se";
  Outcome outcome = train("");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  outcome = train("checkpoint.autoresume=true trainer.max_steps=2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("steps: 2"), std::string::npos) << outcome.out;
  outcome = shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + run_ +
                  "/checkpoints/last.ckpt' 'data.path=" + dir_.path() +
                  "/samples/test.csv' 'paths.output_dir=" + run_ + "/p' trainer.accelerator=cpu");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace cytra
