// A task of your own, trained on images in memory: a U-Net learns to take the noise out of blobs.
#include <algorithm>
#include <cstdio>

#include <ATen/ATen.h>
#include <cytra/base/error.h>
#include <cytra/config/registry.h>
#include <cytra/data/datamodules/array_datamodule.h>
#include <cytra/data/loader/loader.h>
#include <cytra/nn/model.h>
#include <cytra/training/optimizer.h>
#include <cytra/training/scheduler.h>
#include <cytra/training/trainer.h>

using namespace cytra;

/// Every checkpoint holds it: `predict` and Predictor::load() make the network and prepare its
/// images as it says.
const config::Node settings = config::parse_yaml(R"(
task:
  x_key: noisy
  model: {_target_: DynUNet, filters: [8, 16, 32]}
  decoder: {_target_: RegressionDecoder}
  inference_args: {roi_size: [32, 32]}
data:
  transforms: {predict: [{_target_: LoadImaged, keys: [noisy], spatial_dims: 2}]}
)",
                                                 "main.cpp");

struct Denoising final : training::Task {
  std::shared_ptr<nn::Model> network = make<nn::Model>(settings.at("task.model"));
  nn::Model& model() override { return *network; }
  at::Tensor training_step(const data::Batch& batch) override {
    return at::l1_loss((*network)(batch.at("noisy")), batch.at("clean"));
  }
};

data::ArrayDatamodule::Arrays blobs() {
  const at::Tensor clean = (at::avg_pool2d(at::rand({1, 32, 32}), 9, 1, 4) > 0.5).to(at::kFloat);
  return {{"noisy", clean + 0.5 * at::randn_like(clean)}, {"clean", clean}};
}

int main() try {
  std::vector<data::ArrayDatamodule::Arrays> images(32), others(8);
  for (auto* list : {&images, &others}) std::generate(list->begin(), list->end(), blobs);
  const data::ArrayDatamodule module({{data::Split::train, images}, {data::Split::valid, others}});
  data::DataLoader train(loader_spec(module, data::Split::train));
  data::DataLoader valid(loader_spec(module, data::Split::valid));

  Denoising task;
  const auto optimizer = make<training::Optimizer>("{_target_: AdamW, lr: 0.01}");
  const auto scheduler = make<training::Scheduler>("{_target_: CosineAnnealingLR}");
  const auto saver = make<training::Callback>("{_target_: ModelCheckpoint, dirpath: checkpoints}");
  training::TrainerOptions options;
  options.max_epochs = 5;
  training::Trainer trainer(options, task, *optimizer, *scheduler, {saver}, {}, settings);

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
