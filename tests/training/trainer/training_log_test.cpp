#include "training/trainer/training_log.h"

#include <cmath>

#include "tests/training/fixture.h"
#include "training/trainer/step.h"

namespace cytra::training {
namespace {

struct TrainingLogTest : ::testing::Test {
  const Metrics& newest() const { return logger->rows.back().metrics; }
  std::shared_ptr<test::Log> logger = std::make_shared<test::Log>();
  std::vector<std::shared_ptr<Logger>> loggers{logger};
  TrainState state;
  TrainingLog log{loggers, state, c10::Device(c10::kCPU)};
};

TEST_F(TrainingLogTest, MetricsGoToLoggersAndState) {
  state.step = 7;
  state.metrics = {{"lr", 1}, {"val/loss", 2}};
  log.log({{"val/loss", 3}});
  EXPECT_EQ(newest(), (Metrics{{"val/loss", 3}}));
  EXPECT_EQ(logger->rows.back().step, 7);
  EXPECT_EQ(state.metrics, (Metrics{{"lr", 1}, {"val/loss", 3}}));
}

TEST_F(TrainingLogTest, AnEpochsStepsAndItsValidationHaveLightningsNumber) {
  struct Numbers final : Logger {
    void log(const Metrics&, int64_t epoch, int64_t) override { seen.push_back(epoch); }
    std::vector<int64_t> seen;
  };
  const auto numbers = std::make_shared<Numbers>();
  loggers = {numbers};
  for (const auto& [epoch, batch] : {std::pair(0, 1), {0, 2}, {1, 0}, {1, 1}, {1, 2}, {2, 0}}) {
    state.epoch = epoch;  // finished
    state.batch = batch;  // of the one under way
    log.log({{"a", 1}});
  }
  EXPECT_EQ(numbers->seen, (std::vector<int64_t>{0, 0, 0, 1, 1, 1}));
}

TEST_F(TrainingLogTest, TimesAreMeansSinceTheLastRowAndNoPartOfTheState) {
  const StepOutcome outcome{0.5, 2, true};
  const Stopwatch hour(std::chrono::steady_clock::now() - std::chrono::hours(1));
  log.log_step(outcome, 0.1, /*is_clipped=*/false);
  EXPECT_EQ(newest(), (Metrics{{"train/loss_step", 0.5}, {"lr", 0.1}})) << "no batch is over yet";
  log.add_batch(100, hour);
  log.add_batch(300, hour);
  log.log_step(outcome, 0.1, /*is_clipped=*/false);
  EXPECT_EQ(newest().at("data_time"), 200);
  EXPECT_NEAR(newest().at("step_time"), 3600 - 200, 60);
  log.add_batch(50, hour);
  log.log_step(outcome, 0.1, /*is_clipped=*/false);
  EXPECT_EQ(newest().at("data_time"), 50);
  EXPECT_EQ(state.metrics, (Metrics{{"train/loss_step", 0.5}, {"lr", 0.1}}));
  EXPECT_EQ(log.timing().batches, 3);
  EXPECT_EQ(log.timing().waited, 450);
}

TEST_F(TrainingLogTest, TellsOfClippingAndOfStepsLeftOut) {
  log.log_step({0.5, 2, true}, 0.1, /*is_clipped=*/true);
  EXPECT_EQ(newest().at("grad_norm"), 2);
  EXPECT_EQ(newest().count("skipped_steps"), 0U);
  state.skipped = 3;
  log.log_step({0.5, 2, true}, 0.1, /*is_clipped=*/true);
  EXPECT_EQ(state.metrics.at("skipped_steps"), 3);
}

TEST_F(TrainingLogTest, AValidationIsALine) {
  state.epoch = 2;
  state.step = 30;
  testing::internal::CaptureStderr();
  log.log_validation({{"val/dice", 0.75}, {"val/loss", 0.5}}, 40);
  log.log_validation({{"val/loss", 0.25}}, -1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("epoch 2 step 30/40: val/dice 0.7500 val/loss 0.5000\n"), std::string::npos)
      << said;
  EXPECT_NE(said.find("epoch 2 step 30: val/loss 0.2500\n"), std::string::npos) << said;
  EXPECT_EQ(state.metrics, (Metrics{{"val/dice", 0.75}, {"val/loss", 0.25}}));
}

TEST_F(TrainingLogTest, WhatIsNoNumberHasNoSign) {
  const double negative = std::copysign(NAN, -1.0);  // 0 / 0 on x86
  testing::internal::CaptureStderr();
  log.log_validation({{"val/dice", negative}, {"val/hausdorff", -1}}, -1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("val/dice nan val/hausdorff -1.0000\n"), std::string::npos) << said;
  EXPECT_FALSE(std::signbit(newest().at("val/dice")));
  EXPECT_FALSE(std::signbit(state.metrics.at("val/dice")));
  log.log_step({negative, negative, false}, 0.1, /*is_clipped=*/true);
  EXPECT_FALSE(std::signbit(newest().at("train/loss_step")));
  EXPECT_FALSE(std::signbit(newest().at("grad_norm")));
}

}  // namespace
}  // namespace cytra::training
