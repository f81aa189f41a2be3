#include "training/trainer/training_plan.h"

#include "base/error.h"
#include "tests/support/message_of.h"
#include "tests/training/fixture.h"
#include "training/processes/processes.h"

namespace cytra::training {
namespace {

TrainingPlan plan_of(const std::string& options, int64_t train_batches, int64_t valid_batches) {
  Processes alone;
  test::TinyTask task;
  return plan_training(test::trainer_options(options), task, train_batches, valid_batches, alone);
}

TEST(TrainingPlan, TellsStepsAndEpochs) {
  struct Case {
    const char* options;
    int64_t steps, epochs;
  };
  for (const Case& expected : {Case{"{max_epochs: 3}", 21, 3},
                               Case{"{max_epochs: 3, accumulate_grad_batches: 2}", 12, 3},
                               Case{"{max_epochs: 3, max_steps: 10}", 10, 3},
                               Case{"{max_epochs: -1, max_steps: 10}", 10, 2},
                               Case{"{max_epochs: -1, max_time: {hours: 1}}", -1, -1}}) {
    const TrainingPlan plan = plan_of(expected.options, 7, 0);
    EXPECT_EQ(plan.batches, 7) << expected.options;
    EXPECT_EQ(plan.total_steps, expected.steps) << expected.options;
    EXPECT_EQ(plan.total_epochs, expected.epochs) << expected.options;
    EXPECT_FALSE(plan.has_validation);
  }
  EXPECT_TRUE(plan_of("{}", 7, 1).has_validation);
}

TEST(TrainingPlan, RefusesLengthsThatDoNotFit) {
  const auto error = [](const std::string& options, int64_t train, int64_t valid) {
    return message_of<ConfigError>([&] { plan_of(options, train, valid); });
  };
  EXPECT_EQ(error("{}", 0, 1).rfind("the training set has no batch", 0), 0U);
  EXPECT_EQ(error("{val_check_interval: 8}", 7, 1).rfind("trainer.val_check_interval=8: ", 0), 0U);
  EXPECT_EQ(error("{val_check_interval: 8}", 7, 0), "");
  EXPECT_EQ(error("{val_check_interval: 8, check_val_every_n_epoch: null}", 7, 1), "");
}

TEST(TrainingPlan, HasAnEpochUnlessAllAreDone) {
  EXPECT_TRUE(has_epoch(test::trainer_options("{max_epochs: 2}"), 1));
  EXPECT_FALSE(has_epoch(test::trainer_options("{max_epochs: 2}"), 2));
  EXPECT_TRUE(has_epoch(test::trainer_options("{max_epochs: -1, max_steps: 9}"), 1000));
}

/// The batches, of 7 in each of three epochs and a step for every `group`, after which a validation
/// is due.
std::vector<int64_t> validated_after(const std::string& text, int64_t group) {
  const TrainerOptions options = test::trainer_options(text);
  std::vector<int64_t> batches;
  TrainState state;
  for (state.epoch = 0; state.epoch < 3; ++state.epoch) {
    for (int64_t begin = 0; begin < 7; begin += group) {
      state.batch = std::min<int64_t>(7, begin + group);
      state.step += 1;
      if (!is_validation_due(options, state, 7, begin)) continue;
      batches.push_back(state.epoch * 7 + state.batch);
      state.validated_at = state.step;
      EXPECT_FALSE(is_validation_due(options, state, 7, begin)) << "it has been made";
    }
  }
  return batches;
}

TEST(TrainingPlan, ValidatesAfterTheStepOfTheBatch) {
  using Batches = std::vector<int64_t>;
  EXPECT_EQ(validated_after("{}", 1), (Batches{7, 14, 21}));
  EXPECT_EQ(validated_after("{val_check_interval: 3}", 1), (Batches{3, 6, 10, 13, 17, 20}));
  EXPECT_EQ(validated_after("{val_check_interval: 3}", 2), (Batches{4, 6, 11, 13, 18, 20}));
  EXPECT_EQ(validated_after("{val_check_interval: 0.5}", 1), (Batches{3, 6, 10, 13, 17, 20}));
  EXPECT_EQ(validated_after("{check_val_every_n_epoch: 2}", 1), (Batches{14}));
  EXPECT_EQ(validated_after("{val_check_interval: 5, check_val_every_n_epoch: null}", 1),
            (Batches{5, 10, 15, 20}));
}

}  // namespace
}  // namespace cytra::training
