// Cellpose-SAM's file in predict and train: tests/golden/make_cellpose.py wrote a small one.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "io/reader.h"
#include "tests/support/program.h"

namespace cytra {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class CellposeFile : public ::testing::Test {
 protected:
  CellposeFile() {
    EXPECT_EQ(shell("\"$BIN/generate_samples\" --train 2 --valid 1 --test 1 --size 96 --output '" +
                    (dir_ / "data") + "'")
                  .code,
              0);
  }
  const test::TmpDir dir_;
  const std::string file_ = CYTRA_SOURCE_DIR "/tests/golden/cellpose/cpsam";
};

TEST_F(CellposeFile, PredictsLabelsByItself) {
  const std::string image = dir_ / "data/images/test_0000_raw.ome.tif";
  for (const std::string more : {"", "predict.diameter=60"}) {
    const Outcome outcome =
        shell("\"$BIN/predict\" trainer.accelerator=cpu 'checkpoint.ckpt_path=" + file_ +
              "' 'data.path=" + image + "' 'paths.output_dir=" + (dir_ / "out") + "' " + more);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::size_t at = outcome.out.find("prediction: ");
    ASSERT_NE(at, std::string::npos) << outcome.out;
    const io::Image labels = io::read_image(split(outcome.out.substr(at + 12), '\n')[0]);
    EXPECT_EQ(labels.shape[3], 96);
    fs::remove_all(dir_ / "out");
  }
}

TEST_F(CellposeFile, IsTrainedFurtherAndPredicts) {
  const Outcome trained = shell(
      "\"$BIN/train\" experiment=im2im/cellpose_sam target_col=instances trainer.accelerator=cpu "
      "trainer.max_steps=2 "
      "trainer.max_epochs=-1 'checkpoint.ckpt_path=" +
      file_ +
      "' checkpoint.weights_only=true checkpoint.strict=true model.embed_dim=8 model.depth=2 "
      "model.num_heads=2 model.mlp_ratio=2 model.out_chans=8 'model.global_attn_indexes=[1]' "
      "'data.path=" +
      (dir_ / "data") + "' 'paths.output_dir=" + (dir_ / "run") + "'");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome outcome = shell("\"$BIN/predict\" trainer.accelerator=cpu 'checkpoint.ckpt_path=" +
                                (dir_ / "run/checkpoints/last.ckpt") +
                                "' 'data.path=" + (dir_ / "data/images/test_0000_raw.ome.tif") +
                                "' 'paths.output_dir=" + (dir_ / "out") + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace cytra
