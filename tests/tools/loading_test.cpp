// What users meet when images are broken, slow or kept: R8 and R9.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/strings.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class Loading : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + dir_.path() +
                               "/samples' --train 9 --valid 1 --test 1 --size 64 --seed 5");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  std::string train(const std::string& more, const std::string& output = "run") const {
    return "\"$BIN/train\" experiment=im2im/segmentation "
           "trainer.steps_per_epoch=null trainer.accelerator=cpu "
           "trainer.max_epochs=2 patch_shape=[32,32] 'data.path=" +
           dir_.path() + "/samples' 'paths.output_dir=" + dir_.path() + "/" + output + "' " + more;
  }
  /// The image of a row of train.csv, from 0.
  std::string image(std::size_t row) const {
    std::ifstream file(dir_.path() + "/samples/train.csv");
    std::string line;
    for (std::size_t i = 0; i <= row + 1; ++i) std::getline(file, line);
    return dir_.path() + "/samples/" + line.substr(0, line.find(','));
  }
  /// The first one that a run logged.
  std::string loss_of(const std::string& run) const {
    std::ifstream file(dir_.path() + "/" + run + "/csv/version_0/metrics.csv");
    std::string header, row;
    std::getline(file, header);
    std::getline(file, row);
    const auto names = split(header, ',');
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "train/loss_step") return split(row, ',')[i];
    }
    return "no loss";
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }
  test::TmpDir dir_;
};

TEST_F(Loading, BrokenImagesAreLeftOutOrEndTheRun) {
  fs::resize_file(image(2), 100);
  fs::resize_file(image(5), 0);
  fs::copy_file(dir_.path() + "/samples/train.csv", image(7), fs::copy_options::overwrite_existing);
  const Outcome failed = shell(train(""));
  EXPECT_EQ(failed.code, 2);
  EXPECT_NE(failed.err.find("(in LoadImaged)"), std::string::npos) << failed.err;

  const Outcome skipped =
      shell(train("seed=1 data.on_error=skip data.batch_size=3 callbacks=none", "skip"));
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_NE(skipped.err.find("3 images could not be loaded and were left out:"), std::string::npos)
      << skipped.err;
  for (const std::size_t row : {2, 5, 7})
    EXPECT_EQ(count(skipped.err, image(row)), 2U) << skipped.err;  // at once, and at the end
  EXPECT_NE(skipped.out.find("steps: 6"), std::string::npos) << skipped.out;

  const Outcome replaced = shell(train(
      "data.on_error=replace data.batch_size=1 data.num_workers=0 callbacks=none", "replace"));
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_NE(replaced.out.find("steps: 18"), std::string::npos) << replaced.out;
}

TEST_F(Loading, WhatIsLeftOutAddsNoEpochAndLosesNoGradient) {
  fs::resize_file(image(1), 10);
  fs::resize_file(image(6), 10);
  const std::string skip = "data.on_error=skip data.batch_size=1 callbacks=none ";
  const Outcome plain = shell(train(skip));
  EXPECT_NE(plain.out.find("steps: 14"), std::string::npos) << plain.out << plain.err;
  // Groups of 6 and 3 batches: the last one is often cut short by a broken image.
  const Outcome grouped =
      shell(train(skip + "trainer.accumulate_grad_batches=6 trainer.max_epochs=12", "grouped"));
  EXPECT_NE(grouped.out.find("steps: 24"), std::string::npos) << grouped.out << grouped.err;
}

TEST_F(Loading, RowsWithoutAnImageAreLeftOutWhenAsked) {
  fs::remove(image(4));
  EXPECT_EQ(shell(train("callbacks=none")).code, 2);
  const Outcome outcome =
      shell(train("data.on_error=skip data.batch_size=1 callbacks=none", "skip"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("1 rows are left out"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("steps: 16"), std::string::npos) << outcome.out;
}

TEST_F(Loading, ImagesThatAreAllBrokenEndTheRun) {
  for (std::size_t row = 0; row < 9; ++row) fs::resize_file(image(row), 10);
  const Outcome outcome = shell(train("data.on_error=skip callbacks=none"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("no image of the epoch could be loaded"), std::string::npos)
      << outcome.err;
}

TEST_F(Loading, ASecondRunTakesImagesFromTheDiskCache) {
  const std::string cache = " 'data.cache_dir=" + dir_.path() + "/kept'";
  const Outcome first = shell(train("callbacks=none data.ram_cache_gb=0" + cache));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("10 made"), std::string::npos) << first.err;
  const Outcome second = shell(train("callbacks=none data.ram_cache_gb=0" + cache, "second"));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.err.find(" 0 made"), std::string::npos) << second.err;
  const Outcome packed = shell(
      train("callbacks=none data.ram_cache_gb=0 data.cache_compression=zstd 'data.cache_dir=" +
                dir_.path() + "/packed'",
            "third"));
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_EQ(loss_of("run"), loss_of("second"));
  EXPECT_EQ(loss_of("run"), loss_of("third"));
}

TEST_F(Loading, BatchesAreTransformedBeforeTheStep) {
  const std::string noise =
      "callbacks=none 'data.transforms.batch=[{_target_: RandGaussianNoised, keys: [raw], prob: 1, "
      "std: 5}]' ";
  ASSERT_EQ(shell(train("callbacks=none")).code, 0);
  for (const char* run : {"one", "two"}) {
    const Outcome outcome = shell(train(noise, run));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_NE(loss_of("run"), loss_of("one"));
  EXPECT_EQ(loss_of("one"), loss_of("two"));
  const Outcome wrong = shell(train("'data.transforms.batch=[{_target_: RandFlip}]'", "wrong"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("RandFlipd"), std::string::npos) << wrong.err;
}

TEST_F(Loading, TellsWhereTheTimeGoes) {
  const Outcome outcome = shell(train("trainer.log_every_n_steps=1"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.err.find("compute-bound: ") != std::string::npos ||
              outcome.err.find("data-bound: ") != std::string::npos)
      << outcome.err;
  std::ifstream file(dir_.path() + "/run/csv/version_0/metrics.csv");
  std::string header;
  std::getline(file, header);
  EXPECT_NE(header.find("data_time"), std::string::npos) << header;
  EXPECT_NE(header.find("step_time"), std::string::npos) << header;
}

TEST_F(Loading, BatchSizeAutoIsTriedOutAndKept) {
  ASSERT_EQ(shell(train("callbacks=none trainer.max_steps=1")).code, 0);  // the folder is taken
  const Outcome outcome = shell(train("data.batch_size=auto trainer.max_steps=2"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t told = outcome.err.find("data.batch_size=AUTO: ");
  ASSERT_NE(told, std::string::npos) << outcome.err;
  const int size = std::stoi(outcome.err.substr(told + 22));
  const std::string last = dir_.path() + "/run-1/checkpoints/last.ckpt";
  EXPECT_NE(read_file(last).find("\\n  batch_size: " + std::to_string(size) + "\\n"),
            std::string::npos);
  const Outcome again = shell(train(
      "data.batch_size=auto trainer.max_steps=3 'checkpoint.ckpt_path=" + last + "'", "again"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err.find("data.batch_size=AUTO: "), std::string::npos) << "not tried out again";
}

TEST_F(Loading, BatchSizeAutoTriesThePrecisionOfTheTraining) {
  const Outcome outcome =
      shell(train("data.batch_size=AUTO trainer.precision=bf16-true trainer.max_steps=1", "short"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(Loading, AnotherBatchSizeKeepsThePlaceInTheEpoch) {
  ASSERT_EQ(shell(train("data.batch_size=2 trainer.max_steps=3")).code, 0);
  const Outcome outcome = shell(train(
      "data.batch_size=4 'checkpoint.ckpt_path=" + dir_.path() + "/run/checkpoints/last.ckpt'",
      "again"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(
      outcome.err.find("after 6 images of epoch 0 with data.batch_size=2, now 4: 2 images are "
                       "seen again"),
      std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace cytra
