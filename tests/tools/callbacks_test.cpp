// CytoDL's usual callbacks, and the learning rate finder, as a user meets them.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "config/node.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

// Of CytoDL's configs/callbacks, composed: default, learning_rate_monitor and ImageSaver.
constexpr const char* kCytoDl = R"(
model_checkpoint:
  _target_: lightning.pytorch.callbacks.ModelCheckpoint
  dirpath: ${paths.output_dir}/checkpoints
  filename: "epoch_{epoch:03d}"
  monitor: "val/loss"
  verbose: False
  save_last: True
  save_top_k: 1
  mode: "min"
  auto_insert_metric_name: False
  save_weights_only: False
  every_n_train_steps: null
  train_time_interval: null
  every_n_epochs: 1
  save_on_train_epoch_end: null
early_stopping:
  _target_: lightning.pytorch.callbacks.EarlyStopping
  monitor: "val/loss"
  min_delta: 0.
  patience: 300
  verbose: False
  mode: "min"
  strict: True
  check_finite: True
  stopping_threshold: null
  divergence_threshold: null
  check_on_train_epoch_end: null
model_summary:
  _target_: lightning.pytorch.callbacks.RichModelSummary
  max_depth: -1
rich_progress_bar:
  _target_: lightning.pytorch.callbacks.RichProgressBar
learning_rate_monitor:
  _target_: lightning.pytorch.callbacks.LearningRateMonitor
saving:
  _target_: cyto_dl.callbacks.ImageSaver
  save_dir: ${paths.output_dir}
  save_every_n_epochs: 1
  stages: ["train", "test", "val"]
  save_input: True
)";

class Callbacks : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + dir_.path() +
                               "/samples' --train 2 --valid 2 --test 1 --size 64 --seed 5");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  std::string train(const std::string& more) const {
    return "\"$BIN/train\" experiment=im2im/segmentation "
           "trainer.steps_per_epoch=null trainer.accelerator=cpu "
           "patch_shape=[32,32] task.inference_args.roi_size=[32,32] 'data.path=" +
           dir_.path() + "/samples' 'paths.output_dir=" + dir_.path() + "/run' " + more;
  }
  test::TmpDir dir_;
};

TEST_F(Callbacks, CytoDlsConfigurationWorksAsItIs) {
  fs::create_directories(dir_ / "own/callbacks");
  std::ofstream(dir_ / "own/callbacks/cyto.yaml") << kCytoDl;
  const Outcome outcome =
      shell(train("trainer.max_epochs=2 callbacks=cyto --config-dir '" + (dir_ / "own") + "'"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("forward pass of 1x1x32x32"), std::string::npos) << outcome.err;
  for (const char* file : {"checkpoints/last.ckpt",
                           "val_images/001_0.png",
                           "val_images/002_1.png",
                           "train_images/002_0.png"})
    EXPECT_TRUE(fs::exists(dir_ / (std::string("run/") + file))) << file;
  const std::string metrics = read_file(dir_ / "run/csv/version_0/metrics.csv");
  EXPECT_NE(split(metrics, '\n').front().find("lr-AdamW"), std::string::npos);
  const std::string report = read_file(dir_ / "run/report.html");
  EXPECT_NE(report.find("val_images/0"), std::string::npos);
  EXPECT_NE(report.find("<pre>Name"), std::string::npos) << "the summary";
}

TEST_F(Callbacks, TheSummaryAndImagesCanBeLeftOut) {
  const Outcome outcome =
      shell(train("trainer.max_steps=1 trainer.enable_model_summary=false callbacks.saving=null"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("forward pass of"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(dir_ / "run/val_images"));
}

TEST_F(Callbacks, ANameThatIsNoMetricIsTold) {
  const Outcome outcome = shell(train(
      "--json trainer.max_epochs=1 trainer.steps_per_epoch=5 'best.filename=\"{val/dise:.2f}\"'"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("there is no 'val/dise'. Did you mean 'val/dice'?"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(config::parse_yaml(outcome.out, "stdout").get<int64_t>("steps"), 5)
      << "two images are passed again and again";
}

TEST_F(Callbacks, TheBestIsToldWhateverItsCallbackIsNamed) {
  const Outcome outcome = shell(train(
      "--json trainer.max_epochs=1 callbacks.model_checkpoint=null '+callbacks.mine={_target_: "
      "ModelCheckpoint, dirpath: " +
      (dir_ / "kept") + ", monitor: val/loss, mode: min}'"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const config::Node results = config::parse_yaml(outcome.out, "stdout");
  EXPECT_EQ(results.get<std::string>("best_metric"), "val/loss");
  EXPECT_EQ(results.get<std::string>("best_mode"), "min");
  EXPECT_EQ(results.get<std::string>("best_checkpoint"), dir_ / "kept/epoch_001.ckpt");
}

TEST_F(Callbacks, ACheckOfTheDataFindsLayersThatAreNotThere) {
  const Outcome outcome =
      shell(train("--check-data '+callbacks.freeze={_target_: LayerFreeze, contains: [nowhere]}'"));
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_NE(outcome.err.find("contains nowhere"), std::string::npos) << outcome.err;
  const Outcome short_floats = shell(train("--check-data trainer.precision=bf16-true"));
  EXPECT_EQ(short_floats.code, 0) << short_floats.out << short_floats.err;
}

TEST_F(Callbacks, FindsALearningRate) {
  const Outcome outcome = shell(train("--find-lr --json lr_find.num_training=20"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const config::Node results = config::parse_yaml(outcome.out, "stdout");
  const double lr = results.get<double>("suggested_lr");
  const std::vector<std::string> rows = split(read_file(dir_ / "run/lr_find.csv"), '\n');
  ASSERT_GE(rows.size(), 15U);
  EXPECT_EQ(rows[0], "lr,loss,smoothed_loss");
  EXPECT_TRUE(rows[1].starts_with("1e-08,")) << rows[1];
  // Neither of the first ten points nor the last; three digits are printed.
  EXPECT_GE(lr, 0.99 * std::stod(rows[11])) << rows[11];
  EXPECT_LT(lr, 1.01 * std::stod(rows[rows.size() - 2]));
  EXPECT_NE(read_file(dir_ / "run/lr_find.svg").find("</svg>"), std::string::npos);
  EXPECT_FALSE(fs::exists(dir_ / "run/checkpoints"));
  EXPECT_NE(outcome.err.find(" optimizer.lr="), std::string::npos);
  EXPECT_EQ(outcome.err.find("--find-lr"), std::string::npos) << outcome.err;
  const Outcome wrong = shell(train("--find-lr lr_find.max_lr=1e-9"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("lr_find.max_lr: expected more than min_lr"), std::string::npos)
      << wrong.err;
}

}  // namespace
}  // namespace cytra
