// A task of your own, trained on images in memory: a U-Net learns to take the noise out of blobs.
#include <cstdio>

#include <ATen/ATen.h>
#include <cytra/base/error.h>
#include <cytra/config/registry.h>
#include <cytra/data/array_datamodule.h>
#include <cytra/data/loader.h>
#include <cytra/nn/model.h>
#include <cytra/training/optimizer.h>
#include <cytra/training/scheduler.h>
#include <cytra/training/trainer.h>

using namespace cytra;

/// A component by its name and options, as in a config file.
template <class Base>
std::shared_ptr<Base> make(const std::string& yaml) {
  return Registry<Base>::instance().make(config::parse_yaml(yaml, "main.cpp"));
}

struct Denoising final : training::Task {
  std::shared_ptr<nn::Model> network = make<nn::Model>(
      "{_target_: DynUNet, spatial_dims: 2, in_channels: 1, out_channels: 1, "
      "filters: [8, 16], kernel_size: [3, 3], strides: [1, 2], "
      "upsample_kernel_size: [2]}");
  nn::Model& model() override { return *network; }
  at::Tensor training_step(const data::Batch& batch) override {
    return at::l1_loss((*network)(batch.at("noisy")), batch.at("clean"));
  }
};

std::vector<data::ArrayDatamodule::Arrays> images(int64_t count) {
  std::vector<data::ArrayDatamodule::Arrays> list;
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor blobs = at::avg_pool2d(at::rand({1, 32, 32}), 9, 1, 4) > 0.5;
    const at::Tensor clean = blobs.to(at::kFloat);
    list.push_back({{"noisy", clean + 0.5 * at::randn_like(clean)}, {"clean", clean}});
  }
  return list;
}

int main() try {
  at::manual_seed(1);
  data::LoaderOptions loading;
  loading.batch_size = 4;
  const data::ArrayDatamodule module(
      {{data::Split::train, images(32)}, {data::Split::valid, images(8)}}, loading);
  data::DataLoader train(data::loader_spec(module, data::Split::train));
  data::DataLoader valid(data::loader_spec(module, data::Split::valid));

  Denoising task;
  const auto optimizer = make<training::Optimizer>("{_target_: AdamW, lr: 0.01}");
  const auto scheduler = make<training::Scheduler>("{_target_: CosineAnnealingLR}");
  training::TrainerOptions options;
  options.max_epochs = 5;
  training::Trainer trainer(
      options,
      task,
      *optimizer,
      *scheduler,
      {make<training::Callback>("{_target_: ModelCheckpoint, dirpath: checkpoints}")});

  const double before = trainer.evaluate(valid, "val").at("val/loss");
  trainer.fit(train, valid);
  const double after = trainer.evaluate(valid, "val").at("val/loss");
  std::printf("loss before: %.3f\nloss after: %.3f\nbest checkpoint: %s\n",
              before,
              after,
              trainer.state().best_path.c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return exit_code(error);
}
