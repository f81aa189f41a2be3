// One step after the other, against torch.amp.GradScaler, clip_grad_norm_ and clip_grad_value_.
#include "training/trainer/step.h"

#include <algorithm>
#include <cmath>

#include "config/registry.h"
#include "tests/support/golden.h"
#include "tests/training/noise.h"
#include "training/grad_scaler.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer_options.h"

namespace cytra {
namespace {

using config::Node;
using training::GradScaler;
using training::GradScalerOptions;

const std::vector<std::vector<int64_t>> kShapes{{3, 4}, {5}};

at::Tensor flat(const training::NamedParameters& parameters) {
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : parameters)
    all.push_back(parameter.detach().reshape({-1}).clone());
  return at::cat(all);
}

/// What float16 leaves of the scaled gradients of a step.
void set_gradients(const training::NamedParameters& parameters,
                   int64_t step,
                   const at::Tensor& scale,
                   const Node* broken) {
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    const uint64_t seed = 100 * static_cast<uint64_t>(step) + i + 1;
    at::Tensor gradient = (test::noise(seed, kShapes[i]) - 0.5) * std::exp2(step % 5 - 2);
    if (scale.defined()) gradient = (gradient * scale).to(at::kHalf).to(at::kFloat);
    parameters[i].second.mutable_grad() = gradient;
  }
  if (broken != nullptr) parameters[1].second.grad()[2] = std::stod(broken->string);
}

void run_steps(const test::GoldenCase& golden, const std::string& more, bool reads_at_once) {
  SCOPED_TRACE(golden.name + " " + more + (reads_at_once ? " by the host" : " on the device"));
  Node settings = golden.node.at("optimizer");
  settings.set(more, config::parse_yaml("true", "test"));
  const auto optimizer = make<training::Optimizer>(settings);
  training::NamedParameters parameters;
  for (std::size_t i = 0; i < kShapes.size(); ++i)
    parameters.emplace_back(std::to_string(i), test::noise(i, kShapes[i]).requires_grad_(true));
  optimizer->attach(parameters);
  const auto options = config::parse<training::TrainerOptions>(golden.node.at("clip"));
  const Node& scaling = golden.node.at("scaler");
  GradScaler scaler(
      scaling.is_map() ? config::parse<GradScalerOptions>(scaling) : GradScalerOptions{},
      scaling.is_map(),
      at::kCPU);
  const at::Tensor norms = golden.tensor("norm"), weights = golden.tensor("weights");
  for (int64_t step = 0; step < norms.size(0); ++step) {
    const at::Tensor before = flat(parameters);
    const Node* broken = golden.node.at("broken").find_direct(std::to_string(step));
    set_gradients(parameters, step, scaler.factor(), broken);
    const training::Rates rates{optimizer->base_lr()};
    const training::StepOutcome outcome =
        training::update(*optimizer, scaler, options, rates, at::ones({}), reads_at_once).outcome();
    const double norm = norms[step].item<double>();
    ASSERT_EQ(outcome.is_finite, std::isfinite(norm)) << step;
    if (outcome.is_finite) {
      EXPECT_NEAR(outcome.grad_norm, norm, 1e-6 * norm) << step;
    } else {
      EXPECT_TRUE(at::equal(flat(parameters), before)) << step;
    }
    EXPECT_LT(test::max_difference(flat(parameters), weights[step]), 1e-6) << step;
    for (const auto& [name, value] : scaler.state())
      EXPECT_EQ(value.item<double>(), golden.tensor(name)[step].item<double>()) << name << step;
  }
}

TEST(Step, EqualsTorchBothByTheHostAndOnTheDevice) {
  const test::Golden golden("step");
  for (const test::GoldenCase& entry : golden.cases(11)) {
    for (const std::string implementation : {"fused", "foreach"}) {
      run_steps(entry, implementation, true);
      run_steps(entry, implementation, false);
    }
  }
}

// SGD, since a step of Adam is the same whatever its gradients are divided by. The divisor of the
// fused update is a float32 tensor also for weights in float64.
TEST(Step, ClipsDoublesOnTheDevice) {
  for (const std::string implementation : {"fused", "foreach"}) {
    for (const double limit : {0.1, 10.0}) {  // the norm is 3
      SCOPED_TRACE(implementation + " " + std::to_string(limit));
      const auto optimizer =
          make<training::Optimizer>("{_target_: SGD, lr: 0.1, " + implementation + ": true}");
      const at::Tensor weight = at::ones({9}, at::kDouble).requires_grad_(true);
      optimizer->attach({{"w", weight}});
      weight.mutable_grad() = at::ones({9}, at::kDouble);
      training::TrainerOptions options;
      options.gradient_clip_val = limit;
      training::GradScaler scaler({}, false, at::kCPU);
      const training::StepOutcome outcome = training::update(*optimizer,
                                                             scaler,
                                                             options,
                                                             training::Rates{0.1},
                                                             at::ones({}, at::kDouble),
                                                             /*reads_at_once=*/false)
                                                .outcome();
      EXPECT_TRUE(outcome.is_finite);
      EXPECT_DOUBLE_EQ(outcome.grad_norm, 3);
      const double gradient = std::min(1.0, limit / 3);
      EXPECT_LT(
          test::max_difference(weight.detach(), at::full({9}, 1 - 0.1 * gradient, at::kDouble)),
          1e-8);
    }
  }
}

}  // namespace
}  // namespace cytra
