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

/// What follows "predict:" among the last lines of a training.
std::string next_command(const Outcome& trained) {
  const std::string name = "\npredict:  ";
  const std::size_t begin = trained.err.find(name);
  if (begin == std::string::npos) return "false # " + trained.err;
  const std::size_t end = trained.err.find('\n', begin + 1);
  return trained.err.substr(begin + name.size(), end - begin - name.size());
}

TEST_F(Folders, TheNextCommandCanBePasted) {
  const auto predicted = [&](const std::string& command) {
    return shell(command + " trainer.accelerator=cpu 'paths.output_dir=" + dir_ / "p" + "'");
  };
  std::string command = next_command(train(""));
  EXPECT_NE(command.find(dir_.path() + "/samples/valid.csv"), std::string::npos) << command;
  EXPECT_EQ(predicted(command).code, 0) << command;
  for (const std::string column : {"raw", "seg"}) {
    fs::create_directories(dir_ / "my set" + "/" + column);
    for (const auto& entry : fs::directory_iterator(dir_ / "samples/images")) {
      const std::string name = entry.path().filename().string();
      const std::size_t end = name.find("_" + column);
      if (end != std::string::npos)
        fs::copy(entry.path(), dir_ / "my set" + "/" + column + "/" + name.substr(0, end) + ".tif");
    }
  }
  command =
      next_command(train("data=folder 'data.path=" + dir_ / "my set" + "' data.columns=[raw,seg]"));
  EXPECT_NE(command.find(dir_ / "my set/raw"), std::string::npos) << command;
  const Outcome folder = predicted(command);
  EXPECT_EQ(folder.code, 0) << command << folder.err;
  // Images and masks side by side: one of the images
  fs::create_directories(dir_ / "mixed");
  fs::copy(dir_ / "my set/raw/train_0000.tif", dir_ / "mixed/a.tif");
  fs::copy(dir_ / "my set/seg/train_0000.tif", dir_ / "mixed/a_mask.tif");
  fs::copy(dir_ / "my set/raw/train_0001.tif", dir_ / "mixed/b.tif");
  fs::copy(dir_ / "my set/seg/train_0001.tif", dir_ / "mixed/b_mask.tif");
  command = next_command(train("data=folder 'data.path=" + dir_ / "mixed" +
                               "' data.columns=[raw,seg] 'data.folders=[\".\",\".\"]' "
                               "'data.regex=[\"([ab]).tif\",\"([ab])_mask.tif\"]'"));
  EXPECT_NE(command.find(dir_ / "mixed/b.tif"), std::string::npos) << command;
  EXPECT_EQ(predicted(command).code, 0) << command;
}

TEST_F(Folders, TheDataMayBeStoredInAnotherFormOfUnicode) {
  fs::rename(dir_ / "samples", dir_ / "Mu\u0308ller");  // as macOS writes it
  const Outcome trained = train("'data.path=" + dir_ / "M\u00fcller" + "'");
  EXPECT_EQ(trained.code, 0) << trained.err;
}

TEST_F(Folders, AMistakeLeavesNone) {
  for (const char* more : {"trainer.val_check_interval=1000",
                           "trainer.limit_train_batches=1 data.batch_size=9 data.drop_last=true",
                           "'callbacks.model_checkpoint.filename=\"{epoch:q}\"'",
                           "'callbacks.model_checkpoint.filename=\"{nosuch}\"'"}) {
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
