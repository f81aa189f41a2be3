// A training as a whole, against the peer's.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "tests/support/golden.h"
#include "training/optimizer.h"
#include "training/scheduler.h"

namespace cytra {
namespace {

TEST(Training, TwentyStepsEqualTorchAndMonai) {
  const test::Golden golden("train_dynunet");
  const auto model =
      nn::make_model(config::parse_yaml("{_target_: DynUNet, filters: [4, 6, 8]}", "test"));
  nn::load_state(*model, golden.file.tensors(), golden.path, "model.", true);
  const auto loss = Registry<nn::Loss>::instance().make(
      config::parse_yaml("{_target_: DiceCELoss, sigmoid: true}", "test"));
  const auto optimizer = Registry<training::Optimizer>::instance().make(
      config::parse_yaml("{_target_: AdamW, lr: 1e-3, weight_decay: 1e-2}", "test"));
  const auto scheduler = Registry<training::Scheduler>::instance().make(
      config::parse_yaml("{_target_: CosineAnnealingLR}", "test"));
  optimizer->attach(model->named_parameters().pairs());
  const auto stored = [&](const std::string& key) { return golden.cases.front().stored(key); };
  const at::Tensor losses = stored("losses");
  for (int64_t step = 0; step < losses.size(0); ++step) {
    const std::string batch = std::to_string(step % 2);
    const at::Tensor value = (*loss)((*model)(stored("image." + batch)), stored("target." + batch));
    EXPECT_NEAR(value.item<double>(), losses[step].item<double>(), 1e-5) << step;
    value.backward();
    const training::Position position{step, losses.size(0), 0, 1};
    optimizer->step({scheduler->at(optimizer->base_lr(), position).lr});
    optimizer->zero_grad();
  }
  int64_t compared = 0;
  for (const auto& [name, parameter] : nn::state_of(*model)) {
    if (golden.file.tensors().count("final." + name) == 0) continue;
    EXPECT_LT(test::max_difference(parameter.detach(), stored("final." + name)), 1e-5) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace cytra
