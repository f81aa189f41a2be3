// A training of an earlier Cytra goes on: tests/golden/make_checkpoints.sh.
#include <cmath>

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;
using test::shell;

const std::string kOld = CYTRA_SOURCE_DIR "/tests/golden/checkpoints/";

double number_in(const std::string& results, const std::string& key) {
  const std::size_t at = results.find(key + ": ");
  return at == std::string::npos ? NAN : std::stod(results.substr(at + key.size() + 2));
}

/// It was taken up once before: its optimizer, warm-up and averaged weights go on.
TEST(OldCheckpoints, ATrainingOfThenGoesOn) {
  const test::TmpDir dir;
  const std::string row = "raw,seg\n" + kOld + "resumed/raw.png," + kOld + "resumed/seg.png\n";
  for (const char* table : {"train.csv", "valid.csv"}) write_file(dir / table, row);
  const Outcome outcome = shell(
      "\"$BIN/train\" experiment=im2im/segmentation patch_shape=[16,16] model.filters=[2,2,2] "
      "trainer.accelerator=cpu data.num_workers=0 data.batch_size=1 data.allow_shared=true "
      "logger=null scheduler=warmup_cosine scheduler.warmup_steps=5 "
      "trainer.accumulate_grad_batches=2 +callbacks.ema._target_=EMAWeightAveraging "
      "+callbacks.ema.decay=0.5 trainer.max_steps=6 'checkpoint.ckpt_path=" +
      kOld + "format1_resumed.ckpt' 'data.path=" + (dir / ".") +
      "' 'paths.output_dir=" + (dir / "run") + "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(number_in(outcome.out, "steps"), 6);
  // Of an undisturbed training of six steps, by the Cytra that wrote it.
  EXPECT_NEAR(number_in(outcome.out, "val/loss"), 1.4419035911560059, 1e-4) << outcome.out;
}

}  // namespace
}  // namespace cytra
