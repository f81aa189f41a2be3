#include "training/scheduler.h"

#include <set>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using training::Position;
using training::Scheduler;

std::shared_ptr<Scheduler> make_scheduler(const std::string& text) {
  return cytra::make<Scheduler>(text);
}
Position at_step(int64_t step) {
  return {step, 60, step / 4, 15};
}

TEST(Scheduler, RatesEqualThePeers) {
  const test::Golden golden("optim"), more("optim_more");
  std::vector<test::GoldenCase> cases = golden.cases(76);
  cases.insert(cases.end(), more.cases(21).begin(), more.cases(21).end());
  std::set<std::string> kinds;
  for (const test::GoldenCase& entry : cases) {
    if (entry.node.find_direct("scheduler") == nullptr) continue;
    SCOPED_TRACE(entry.name);
    const std::string kind = entry.node.get<std::string>("scheduler");
    kinds.insert(kind);
    const auto scheduler = cytra::make<Scheduler>(test::component(kind, entry.options()));
    const at::Tensor expected = entry.tensor("lr");
    ASSERT_EQ(expected.size(0), 60);
    // torch goes from rate to rate: near 0 its error is that of the rates before.
    for (int64_t step = 0; step < 60; ++step) {
      const training::Rates rates = scheduler->at(0.1, at_step(step));
      const double lr = expected[step].item<double>();
      EXPECT_NEAR(rates.lr, lr, 1e-12 * std::max(lr, 0.1)) << step;
      EXPECT_EQ(rates.momentum.has_value(), entry.has("momentum"));
      if (!rates.momentum) continue;
      EXPECT_NEAR(*rates.momentum, entry.tensor("momentum")[step].item<double>(), 1e-12) << step;
    }
  }
  EXPECT_EQ(kinds.size(), 12U);
}

TEST(Scheduler, PlateausEqualTorch) {
  const test::Golden golden("optim");
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases(76)) {
    if (entry.node.find_direct("plateau") == nullptr) continue;
    for (const int64_t restart : {-1, 7, 31, 45}) {  // the state goes through a new one here
      SCOPED_TRACE(entry.name + ", " + std::to_string(restart));
      const config::Node node = test::component("ReduceLROnPlateau", entry.options());
      auto scheduler = cytra::make<Scheduler>(node);
      const at::Tensor metric = entry.tensor("metric"), expected = entry.tensor("lr");
      for (int64_t i = 0; i < metric.size(0); ++i) {
        if (i == restart) {
          const auto state = scheduler->state();
          scheduler = cytra::make<Scheduler>(node);
          scheduler->load(state);
        }
        scheduler->on_metrics({{"val/loss", metric[i].item<double>()}, {"other", 1}});
        EXPECT_NEAR(scheduler->at(0.1, at_step(i)).lr, expected[i].item<double>(), 1e-13) << i;
      }
    }
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

TEST(Scheduler, RepeatsCosineGoldenOfAnotherRate) {
  const test::Golden golden("adamw");
  const auto compare = [&](const char* name, const char* text) {
    SCOPED_TRACE(name);
    const auto scheduler = make_scheduler(text);
    const at::Tensor expected = golden.at(name).tensor("lr");
    for (int64_t step = 0; step < expected.size(0); ++step)
      EXPECT_NEAR(scheduler->at(1e-3, {step, 40, 0, 1}).lr, expected[step].item<double>(), 1e-9);
  };
  compare("lr_cosine", "{_target_: CosineAnnealingLR}");
  compare("lr_warmup_cosine",
          "{_target_: CosineAnnealingLR, T_max: 35, eta_min: 1e-5, warmup_steps: 5}");
}

TEST(Scheduler, WarmsUpWhileEpochsCount) {
  const auto scheduler = make_scheduler(
      "{_target_: MultiStepLR, milestones: [2], interval: epoch, warmup_steps: 10, "
      "warmup_start_factor: 0}");
  EXPECT_DOUBLE_EQ(scheduler->at(1, at_step(0)).lr, 0);
  EXPECT_DOUBLE_EQ(scheduler->at(1, at_step(5)).lr, 0.5);
  EXPECT_DOUBLE_EQ(scheduler->at(1, at_step(9)).lr, 0.9 * 0.1);  // of epoch 2
  EXPECT_DOUBLE_EQ(scheduler->at(1, at_step(10)).lr, 0.1);
}

TEST(Scheduler, KeepsItsLastRateBeyondTheCycle) {
  const auto scheduler = make_scheduler("{_target_: OneCycleLR, max_lr: 1, total_steps: 20}");
  const training::Rates last = scheduler->at(1, at_step(19)), later = scheduler->at(1, at_step(50));
  EXPECT_DOUBLE_EQ(last.lr, 1 / 25.0 / 1e4);
  EXPECT_DOUBLE_EQ(later.lr, last.lr);
  EXPECT_DOUBLE_EQ(*later.momentum, *last.momentum);
}

TEST(Scheduler, RefusesWhatCanNotBe) {
  const auto message = [](const std::string& text) {
    return message_of<ConfigError>([&] { make_scheduler(text)->at(0.1, {3, 60, 0, -1}); });
  };
  const auto expect = [&](const std::string& text, const char* part) {
    EXPECT_NE(message(text).find(part), std::string::npos) << message(text);
  };
  expect("{_target_: StepLR}", "step_size");
  expect("{_target_: StepLR, step_size: 0}", "step_size");
  expect("{_target_: CosineAnnealingLR, interval: epoch}", "max_epochs");
  expect("{_target_: CosineAnnealingLR, interval: batch}", "step, epoch");
  expect("{_target_: OneCycleLR, epochs: 3}", "steps_per_epoch");
  expect("{_target_: ReduceLROnPlateau, factor: 1}", "factor");
  expect("{_target_: SequentialLR, schedulers: [{_target_: LinearLR}], milestones: [3]}",
         "milestones");
  expect(
      "{_target_: SequentialLR, schedulers: [{_target_: LinearLR}, {_target_: ReduceLROnPlateau}], "
      "milestones: [3]}",
      "ReduceLROnPlateau");
  EXPECT_EQ(message("{_target_: CosineAnnealingLR}"), "");
  const std::string missing = message_of<ConfigError>([] {
    make_scheduler("{_target_: ReduceLROnPlateau, monitor: val/los}")
        ->on_metrics({{"val/loss", 1}});
  });
  EXPECT_NE(missing.find("'val/loss'"), std::string::npos) << missing;
}

TEST(Scheduler, ACosineNeedsTheLengthOfTheTraining) {
  for (const char* type : {"WarmupCosineSchedule", "CosineAnnealingLR"})
    EXPECT_THROW(make_scheduler(std::string("{_target_: ") + type + "}")->at(0.1, {3, -1, 0, -1}),
                 ConfigError);
}

}  // namespace
}  // namespace cytra
