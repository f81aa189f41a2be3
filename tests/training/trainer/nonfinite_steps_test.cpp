// on_nonfinite=dump is in trainer_test.cpp: its checkpoint is taken up again.
#include "training/trainer/nonfinite_steps.h"

#include <cmath>

#include "base/error.h"
#include "tests/support/message_of.h"
#include "tests/training/fixture.h"
#include "training/grad_scaler.h"
#include "training/processes/processes.h"
#include "training/trainer/step.h"

namespace cytra::training {
namespace {

/// Steps 1, 2, ... that are not finite.
struct BadSteps {
  explicit BadSteps(const std::string& text) : options(test::trainer_options(text)) {}
  /// The error that ends the run; "": the step is left out.
  std::string add(double loss, double norm) {
    PendingStep step;
    step.number = ++number;
    step.group.ids = {"a", "b"};
    return message_of<DivergedError>([&] {
      steps.leave_out(step, StepOutcome{loss, norm, false}, state);
    });
  }
  TrainerOptions options;
  test::TinyTask task;
  std::shared_ptr<Optimizer> optimizer = make<Optimizer>("{_target_: SGD}");
  std::shared_ptr<Scheduler> scheduler = make<Scheduler>("{_target_: ConstantLR, factor: 1}");
  GradScaler scaler{{}, false, c10::Device(c10::kCPU)};
  std::vector<std::shared_ptr<Callback>> callbacks;
  CheckpointedObjects objects{task, *optimizer, *scheduler, scaler, callbacks};
  config::Node config = config::Node::make_map();
  Processes alone;
  NonfiniteSteps steps{options, objects, config, alone};
  TrainState state;
  int64_t number = 0;
};

TEST(NonfiniteSteps, EndTheRunWithStepSamplesAndAdvice) {
  EXPECT_EQ(BadSteps("{}").add(NAN, 1),
            "the loss is nan at step 1 (samples: a, b); try a lower optimizer.lr or "
            "trainer.gradient_clip_val=1");
  EXPECT_EQ(BadSteps("{}").add(1, INFINITY).rfind("the norm of the gradients is inf at step 1", 0),
            0U);
}

TEST(NonfiniteSteps, AreLeftOutUnlessAHundredComeInARow) {
  BadSteps bad("{on_nonfinite: skip}");
  for (int64_t n = 1; n <= 99; ++n) EXPECT_EQ(bad.add(NAN, 1), "");
  bad.steps.end_row();
  for (int64_t n = 1; n <= 99; ++n) EXPECT_EQ(bad.add(NAN, 1), "");
  const std::string error = bad.add(NAN, 1);
  EXPECT_NE(error.find("the last 100 steps were left out"), std::string::npos) << error;
  EXPECT_EQ(bad.state.skipped, 199);
}

TEST(NonfiniteSteps, OverflowOfFloat16IsNoFailure) {
  BadSteps bad("{precision: 16-mixed, on_nonfinite: stop}");
  EXPECT_EQ(bad.add(1, INFINITY), "");
  EXPECT_NE(bad.add(NAN, INFINITY), "") << "no smaller scale would help";
}

}  // namespace
}  // namespace cytra::training
