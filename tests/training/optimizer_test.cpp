#include "training/optimizer.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "tests/support/golden.h"
#include "training/scheduler.h"

namespace cytra {
namespace {

TEST(Optimizer, TwentyStepsEqualTorch) {
  const test::Golden golden("adamw");
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases) {
    if (!entry.has("start.0")) continue;
    SCOPED_TRACE(entry.name);
    const auto optimizer = Registry<training::Optimizer>::instance().make(
        test::component(entry.node.get<std::string>("optimizer"), entry.options()));
    std::map<std::string, at::Tensor> parameters;
    for (const char* i : {"0", "1"})
      parameters[i] = entry.tensor(std::string("start.") + i).clone().requires_grad_(true);
    optimizer->attach(parameters);
    for (int64_t step = 0; step < entry.node.get<int64_t>("steps"); ++step) {
      for (auto& [i, parameter] : parameters)
        parameter.mutable_grad() = entry.tensor("grads." + i)[step].clone();
      optimizer->step({optimizer->base_lr(), {}, {}, {}});
    }
    for (const auto& [i, parameter] : parameters) {
      EXPECT_LT(test::max_difference(parameter.detach(), entry.tensor("param." + i)), 1e-6);
      for (const char* slot : {"exp_avg.", "exp_avg_sq.", "momentum_buffer."}) {
        if (entry.has(slot + i)) {
          EXPECT_LT(test::max_difference(optimizer->state().at(slot + i), entry.tensor(slot + i)),
                    1e-6)
              << slot;
        }
      }
    }
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

TEST(Optimizer, ClipsTheJointNorm) {
  const auto optimizer =
      Registry<training::Optimizer>::instance().make(config::parse_yaml("{_target_: SGD}", "test"));
  const at::Tensor a = at::zeros({2}).requires_grad_(true), b = at::zeros({2}).requires_grad_(true);
  optimizer->attach({{"a", a}, {"b", b}});
  a.mutable_grad() = at::full({2}, 3.0);
  b.mutable_grad() = at::full({2}, 4.0);
  EXPECT_NEAR(optimizer->clip_grad_norm(1).item<double>(), std::sqrt(50.0), 1e-5);
  EXPECT_NEAR(a.grad()[0].item<double>(), 3 / std::sqrt(50.0), 1e-5);
  EXPECT_NEAR(b.grad()[0].item<double>(), 4 / std::sqrt(50.0), 1e-5);
}

TEST(Scheduler, RatesEqualTorch) {
  const test::Golden golden("adamw");
  int compared = 0;
  const auto compare = [&](const char* name, const char* text) {
    SCOPED_TRACE(name);
    const auto scheduler =
        Registry<training::Scheduler>::instance().make(config::parse_yaml(text, "test"));
    const at::Tensor expected = golden.at(name).tensor("lr");
    for (int64_t step = 0; step < expected.size(0); ++step) {
      EXPECT_NEAR(scheduler->lr(1e-3, step, 40), expected[step].item<double>(), 1e-9) << step;
    }
    ++compared;
  };
  for (const test::GoldenCase& entry : golden.cases) {
    if (entry.name == "lr_cosine") compare("lr_cosine", "{_target_: CosineAnnealingLR}");
    if (entry.name == "lr_warmup_cosine") {
      compare("lr_warmup_cosine",
              "{_target_: CosineAnnealingLR, T_max: 35, eta_min: 1e-5, warmup_steps: 5}");
    }
  }
  EXPECT_GE(compared, 1);
}

}  // namespace
}  // namespace cytra
