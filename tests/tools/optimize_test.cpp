// `optimize` on experiments whose fault is known.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "config/node.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;
using test::shell;

class OptimizeProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome made = shell("\"$BIN/generate_samples\" --output '" + dir_.path() +
                               "/samples' --train 6 --valid 2 --test 0 --size 64 --seed 5");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  std::string optimize(const std::string& more) const {
    return "\"$BIN/optimize\" experiment=im2im/segmentation trainer.accelerator=cpu "
           "'patch_shape=[16,16]' 'model.filters=[4,4,8]' performance.num_threads=1 'data.path=" +
           dir_.path() + "/samples' 'paths.output_dir=" + run_ + "' " + more;
  }
  test::TmpDir dir_;
  std::string run_ = dir_ / "run";
};

TEST_F(OptimizeProgram, NamesTheCallbackThatHoldsATrainingBack) {
  const Outcome outcome = shell(optimize(
      "--detect-bottlenecks --seconds 1 --json "
      "'+callbacks.norms={_target_: GradientLogging, grouping_level: -1, every_n_steps: 1, "
      "histogram_every_n_steps: 1}'"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const config::Node found = config::parse_yaml(outcome.out, "stdout");
  EXPECT_EQ(found.get<std::string>("bottleneck"), "sync-bound") << outcome.err;
  EXPECT_GT(found.get<double>("images_per_second"), 0);
  double sum = 0;
  for (const char* part : {"data", "sync", "launch", "compute"}) sum += found.get<double>(part);
  EXPECT_NEAR(sum, 1, 1e-3);
  EXPECT_GT(found.get<double>("sync"), 0.2);
  EXPECT_NE(outcome.err.find("tried callbacks.norms.every_n_steps=50 "
                             "callbacks.norms.histogram_every_n_steps=50: "),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find("epoch 1"), std::string::npos) << "its trainings are quiet";
  EXPECT_FALSE(fs::exists(run_)) << "nothing is kept";
}

TEST_F(OptimizeProgram, KeepsNothingAfterASignal) {
  const Outcome outcome = shell(
      optimize("--detect-bottlenecks --seconds 300") + " & pid=$!; for i in $(seq 600); do [ -e '" +
      run_ + "' ] && break; sleep 0.1; done; [ -e '" + run_ + "' ] && kill -INT $pid; wait $pid");
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_FALSE(fs::exists(run_)) << outcome.err;
}

TEST_F(OptimizeProgram, SaysWhatIsMissing) {
  const Outcome none = shell(optimize(""));
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("expected --detect-bottlenecks"), std::string::npos) << none.err;
  const Outcome wrong = shell(optimize("--detect-bottlenecks --seconds soon"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("optimize.seconds"), std::string::npos) << wrong.err;
  EXPECT_FALSE(fs::exists(run_));
}

}  // namespace
}  // namespace cytra
