#include "training/trainer/evaluator.h"

#include <c10/core/GradMode.h>

#include "data/loader/device_feed.h"
#include "tests/training/fixture.h"
#include "training/processes/processes.h"
#include "training/trainer/stop_condition.h"

namespace cytra::training {
namespace {

/// An average whose weights are all 0.
struct ZeroWeights final : Callback {
  void swap_in(Task& task) override {
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : task.model().parameters()) {
      kept.push_back(parameter.detach().clone());
      at::Tensor(parameter).zero_();
    }
  }
  void swap_out(Task& task) noexcept override {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> parameters = task.model().parameters();
    for (std::size_t p = 0; p < kept.size(); ++p) at::Tensor(parameters[p]).copy_(kept[p]);
    kept.clear();
  }
  std::vector<at::Tensor> kept;
};

struct EvaluatorTest : ::testing::Test {
  Metrics evaluate(int64_t batches, Evaluator::Weights weights, const Evaluator::Hooks& hooks) {
    data::DataLoader loader = test::loader(3, 1, false);
    data::DeviceFeed feed(loader, c10::kCPU);
    return evaluator.evaluate(feed, batches, "test", weights, hooks);
  }
  Processes alone;
  test::TinyTask task;
  TrainerOptions options = test::trainer_options("{}");
  std::vector<std::shared_ptr<Callback>> callbacks{std::make_shared<ZeroWeights>()};
  TrainState state;
  StopCondition stop{options, alone};
  Evaluator evaluator{options, task, callbacks, state, alone, stop, c10::Device(c10::kCPU)};
};

TEST_F(EvaluatorTest, MeasuresWithoutTraining) {
  task.net->train();
  std::vector<int64_t> done;
  std::string order;
  const Metrics metrics = evaluate(2,
                                   Evaluator::Weights::present,
                                   {[&](const data::Batch& batch, int64_t number) {
                                      EXPECT_EQ(batch.ids.front(), std::to_string(number - 1));
                                      EXPECT_FALSE(task.net->is_training());
                                      EXPECT_FALSE(c10::GradMode::is_enabled());
                                      order += "batch ";
                                    },
                                    [&] { order += "begin "; }});
  EXPECT_EQ(order, "begin batch batch ");
  EXPECT_EQ(task.validation_batches, 2);
  ASSERT_EQ(metrics.size(), 1U);
  EXPECT_GT(metrics.at("test/loss"), 0);
  EXPECT_TRUE(task.net->is_training());
  EXPECT_TRUE(c10::GradMode::is_enabled());
  task.net->eval();
  EXPECT_EQ(evaluate(2, Evaluator::Weights::present, {}), metrics);
  EXPECT_FALSE(task.net->is_training()) << "as it was";
}

TEST_F(EvaluatorTest, TakesTheWeightsThatCallbacksSwapIn) {
  const at::Tensor before = task.net->conv->weight.detach().clone();
  const double present = evaluate(3, Evaluator::Weights::present, {}).at("test/loss");
  const double zero = evaluate(3, Evaluator::Weights::swapped_in, {}).at("test/loss");
  EXPECT_TRUE(at::equal(task.net->conv->weight, before));
  for (at::Tensor& parameter : task.net->parameters()) parameter.detach().zero_();
  EXPECT_EQ(evaluate(3, Evaluator::Weights::present, {}).at("test/loss"), zero);
  EXPECT_NE(present, zero);
}

TEST_F(EvaluatorTest, WhatATaskDrawsFollowsFromTheStep) {
  const auto draw = [&](int64_t step) {
    state.step = step;
    double value = 0;
    evaluate(
        1, Evaluator::Weights::present, {nullptr, [&] { value = at::rand({}).item<double>(); }});
    return value;
  };
  const double first = draw(1);
  EXPECT_NE(draw(2), first);
  EXPECT_EQ(draw(1), first);
}

}  // namespace
}  // namespace cytra::training
