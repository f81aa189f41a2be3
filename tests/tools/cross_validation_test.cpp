// From a plan over a sweep of folds to the ensemble's prediction.
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

TEST(CrossValidation, PlannedTrainedInFoldsAndPredictedWithAll) {
  const test::TmpDir dir;
  const auto run = [&](const std::string& program, const std::string& arguments) {
    const Outcome outcome =
        shell("cd '" + dir.path() + "' && \"$BIN/" + program + "\" " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  };
  run("generate_samples", "--output samples --train 4 --valid 1 --test 1 --size 64 --seed 5");
  const Outcome planned = run("train", "--plan data.path=samples plan.memory_gb=0.5");
  EXPECT_NE(planned.out.find("plan: local/experiment/samples.yaml"), std::string::npos);
  EXPECT_NE(planned.err.find("--config-dir local experiment=samples"), std::string::npos);
  run("train",
      "--config-dir local experiment=samples -m data.folds=2 data.fold=0,1 hydra.sweep.dir=folds "
      "trainer.accelerator=cpu trainer.max_steps=1 data.num_workers=0 logger=none "
      "'model.filters=[4,4,4,8,8]' patch_shape=[32,32]");
  EXPECT_TRUE(fs::exists(dir / "folds/0/checkpoints/last.ckpt"));
  const Outcome predicted =
      run("predict",
          "'checkpoint.ckpt_path=folds/*/checkpoints/last.ckpt' data.path=samples/test.csv "
          "trainer.accelerator=cpu paths.output_dir=predicted");
  EXPECT_FALSE(fs::is_empty(dir / "predicted"));
  EXPECT_NE(predicted.err.find("and 1 more"), std::string::npos) << predicted.err;
}

}  // namespace
}  // namespace cytra
