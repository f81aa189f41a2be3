// Signals, and what several processes agree on, are in processes_test.cpp: both need a process of
// their own.
#include "training/trainer/stop_condition.h"

#include "tests/training/fixture.h"
#include "training/processes/processes.h"

namespace cytra::training {
namespace {

TrainState state_at(int64_t epoch, int64_t step) {
  TrainState state;
  state.epoch = epoch;
  state.step = step;
  return state;
}

TEST(StopCondition, EndsAfterItsSteps) {
  Processes alone;
  const TrainerOptions limited = test::trainer_options("{max_steps: 5}"),
                       endless = test::trainer_options("{max_steps: -1}");
  const StopCondition stop(limited, alone), none(endless, alone);
  EXPECT_FALSE(stop.is_met(state_at(0, 4)));
  EXPECT_TRUE(stop.is_met(state_at(0, 5)));
  EXPECT_FALSE(none.is_met(state_at(1000, 1000000)));
}

TEST(StopCondition, TimeCountsFromTheCheckpointOn) {
  Processes alone;
  const TrainerOptions options = test::trainer_options("{max_time: {hours: 1}}");
  StopCondition stop(options, alone);
  EXPECT_FALSE(stop.is_met(state_at(0, 0)));
  stop.start_clock(3600);
  EXPECT_GE(stop.seconds(), 3600);
  EXPECT_TRUE(stop.is_met(state_at(0, 0)));
  stop.start_clock(0);
  EXPECT_FALSE(stop.is_met(state_at(0, 0)));
}

TEST(StopCondition, TimeForAValidationIsKept) {
  Processes alone;
  const TrainerOptions options = test::trainer_options("{max_time: {hours: 1}}");
  StopCondition stop(options, alone);
  stop.keep_for_validation(600);
  for (const auto& [begin, is_met] : {std::pair(2900, false), std::pair(3001, true)}) {
    stop.start_clock(begin);
    EXPECT_EQ(stop.is_met(state_at(0, 0)), is_met) << begin;
    EXPECT_FALSE(stop.is_late()) << begin;
  }
  stop.keep_for_validation(1e6);  // at most half
  stop.start_clock(1700);
  EXPECT_FALSE(stop.is_met(state_at(0, 0)));
}

TEST(StopCondition, ARequestWaitsForMinEpochsAndMinSteps) {
  Processes alone;
  const TrainerOptions options = test::trainer_options("{min_epochs: 1, min_steps: 4}");
  StopCondition stop(options, alone);
  EXPECT_FALSE(stop.is_met(state_at(1, 4)));
  stop.ask();
  EXPECT_FALSE(stop.is_met(state_at(0, 4)));
  EXPECT_FALSE(stop.is_met(state_at(1, 3)));
  EXPECT_TRUE(stop.is_met(state_at(1, 4)));
}

TEST(StopCondition, AloneThereIsNobodyToAgreeWith) {
  Processes alone;
  const TrainerOptions options = test::trainer_options("{}");
  StopCondition stop(options, alone);
  EXPECT_TRUE(stop.agree(true));
  EXPECT_FALSE(stop.agree(false));
}

}  // namespace
}  // namespace cytra::training
