// One step after the other, against torch.amp.GradScaler, clip_grad_norm_ and clip_grad_value_.
#include "training/step.h"

#include <cmath>

#include "config/registry.h"
#include "tests/support/golden.h"
#include "tests/training/noise.h"
#include "training/grad_scaler.h"
#include "training/optimizer.h"
#include "training/scheduler.h"

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
    const training::Outcome outcome =
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

TEST(Step, ClipsDoublesOnTheDevice) {
  const auto optimizer = make<training::Optimizer>("{_target_: Adam}");
  const at::Tensor weight = at::ones({3}, at::kDouble).requires_grad_(true);
  optimizer->attach({{"w", weight}});
  weight.mutable_grad() = at::ones({3}, at::kDouble);
  training::TrainerOptions options;
  options.gradient_clip_val = 0.1;
  training::GradScaler scaler({}, false, at::kCPU);
  const training::Rates rates{0.1};
  const at::Tensor loss = at::ones({}, at::kDouble);
  EXPECT_TRUE(training::update(*optimizer, scaler, options, rates, loss, /*reads_at_once=*/false)
                  .outcome()
                  .is_finite);
}

}  // namespace
}  // namespace cytra
