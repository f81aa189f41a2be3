// Trainings as a whole, against those of Lightning with PyTorch and MONAI.
#include <torch/nn/modules/batchnorm.h>

#include "tests/support/golden.h"
#include "tests/support/tmp_dir.h"
#include "tests/training/fixture.h"
#include "tests/training/noise.h"

namespace cytra {
namespace {

using config::Node;

data::DataLoader loader_of(std::vector<data::Sample> items, int64_t batch_size) {
  data::DataLoaderSpec spec;
  for (std::size_t i = 0; i < items.size(); ++i) items[i].id = std::to_string(i);
  spec.items = std::move(items);
  spec.options.batch_size = batch_size;
  return data::DataLoader(std::move(spec));
}

/// Without validation; `callbacks` by name.
void train(training::Task& task,
           data::DataLoader loader,
           Node options,
           const std::string& optimizer,
           const std::string& scheduler,
           const std::map<std::string, std::shared_ptr<training::Callback>>& callbacks) {
  options.set("enable_progress_bar", config::parse_yaml("false", "test"));
  const auto updates = make<training::Optimizer>(optimizer);
  const auto rates = make<training::Scheduler>(scheduler);
  updates->attach(task.model().named_parameters().pairs());
  std::vector<std::shared_ptr<training::Callback>> all;
  for (const auto& [name, callback] : callbacks) {
    all.push_back(callback);
    all.back()->name = name;
  }
  training::Trainer trainer(
      config::parse<training::TrainerOptions>(options), task, *updates, *rates, all);
  data::DataLoader none({});
  trainer.fit(loader, none);
}

/// An image of blocks and its classes, both (1, ...).
data::Sample segmented(uint64_t number, double classes, const std::vector<int64_t>& size) {
  std::vector<int64_t> blocks;
  for (const int64_t n : size) blocks.push_back(n / 8);
  at::Tensor seg = (test::noise(2 * number + 1001, blocks) * classes).floor();
  for (std::size_t dim = 0; dim < size.size(); ++dim)
    seg = seg.repeat_interleave(8, static_cast<int64_t>(dim));
  data::Sample sample;
  sample.tensors["raw"] = (seg * 0.5 + test::noise(2 * number + 1000, size)).unsqueeze(0);
  sample.tensors["seg"] = seg.unsqueeze(0);
  return sample;
}

/// 50 steps of two batches each: warm-up, cosine, clipping.
void expect_curve(const std::string& topic) {
  const test::Golden golden(topic);
  const test::GoldenCase& expected = golden.cases(1).front();
  Node node = test::component("SegmentationTask", Node::make_map());
  node.set("model", test::component("DynUNet", expected.node.at("model")));
  node.set("loss", test::component("DiceCELoss", expected.node.at("loss")));
  const auto task = make<training::Task>(node);
  nn::load_state(task->model(), golden.file.tensors(), golden.path, "model.", nn::Fit::all);
  std::vector<data::Sample> images;
  for (uint64_t i = 0; i < 40; ++i)
    images.push_back(segmented(
        i, expected.node.get<double>("classes"), expected.node.get<std::vector<int64_t>>("size")));
  const auto recorder = std::make_shared<test::Recorder>();
  std::vector<double> norms, rates;
  recorder->each_step = [&](const training::Context& context) {
    norms.push_back(context.grad_norm);
    rates.push_back(context.lr);
  };
  train(*task,
        loader_of(images, 2),
        expected.node.at("trainer"),
        "{_target_: AdamW, lr: 1e-2, weight_decay: 1e-2}",
        "{_target_: CosineAnnealingLR, warmup_steps: 10, warmup_start_factor: 0.1}",
        {{"recorder", recorder}});
  const auto difference = [&](const std::vector<double>& ours, const std::string& role) {
    return test::max_difference(at::tensor(ours, at::kDouble), expected.tensor(role));
  };
  EXPECT_LT(difference(recorder->losses, "losses"), 1e-4);
  EXPECT_LT(difference(norms, "norms"), 1e-3);
  EXPECT_LT(difference(rates, "rates"), 1e-12);
}

TEST(Training, ACurveIn2dEqualsLightnings) {
  expect_curve("train_2d");
}
TEST(Training, ACurveIn3dEqualsLightnings) {
  expect_curve("train_3d");
}

/// Learns y = 2 x - 1.
struct Regression final : training::Task {
  struct Net final : nn::Model {
    Net() : Model({}) {
      uint64_t seed = 50;
      register_module("0", first);
      register_module("1", norm);
      register_module("3", last);
      const at::NoGradGuard no_grad;
      for (at::Tensor& parameter : parameters())
        parameter.copy_(test::noise(seed++, parameter.sizes()));
    }
    at::Tensor forward(const at::Tensor& image) override { return last(norm(first(image)).relu()); }
    std::vector<int64_t> divisor() const override { return {1, 1}; }
    int64_t in_channels() const override { return 1; }
    int64_t spatial_dims() const override { return 2; }
    int64_t out_channels() const override { return 1; }
    torch::nn::Conv2d first{torch::nn::Conv2dOptions(1, 3, 1)},
        last{torch::nn::Conv2dOptions(3, 1, 1)};
    torch::nn::BatchNorm2d norm{3};
  };
  nn::Model& model() override { return net; }
  Tensor training_step(const data::Batch& batch) override {
    const at::Tensor& x = batch.at("x");
    return (net.forward(x) - (2 * x - 1)).square().mean();
  }
  void validation_step(const data::Batch&) override {}
  training::Metrics validation_end() override { return {}; }
  Net net;
};

// The checkpoint's model.* are the averages; the weights in training are beside them.
TEST(Training, AveragedWeightsEqualTorchAndLightnings) {
  const test::Golden golden("averages");
  for (const test::GoldenCase& expected : golden.cases(7)) {
    SCOPED_TRACE(expected.name);
    const test::TmpDir dir;
    std::vector<data::Sample> images(48);
    for (std::size_t i = 0; i < images.size(); ++i)
      images[i].tensors["x"] = test::noise(200 + i / 2, {2, 4, 4}).slice(0, i % 2, i % 2 + 1);
    Regression task;
    task.net.to(at::kDouble);
    train(task,
          loader_of(images, 4),
          expected.node.at("trainer"),
          "{_target_: SGD, lr: 0.05, momentum: 0.9}",
          "{_target_: ExponentialLR, gamma: 1.0}",
          {{"average",
            make<training::Callback>(
                test::component(expected.node.get<std::string>("callback"), expected.options()))},
           {"saver",
            make<training::Callback>("{_target_: ModelCheckpoint, monitor: null, dirpath: '" +
                                     dir.path() + "'}")}});
    const io::SafetensorsFile saved(dir / "last.ckpt");
    int64_t compared = 0;
    for (const auto& [role, key] : expected.node.at("tensors").map) {
      // The number of batches is an integer, which Lightning averages too, rounding down; a
      // copy here.
      if (role.find("num_batches_tracked") != std::string::npos) continue;
      const std::string name = role.rfind("model.", 0) == 0 ? role : "callback.average." + role;
      EXPECT_LT(test::max_difference(nn::tensor_of(saved.tensors().at(name), name),
                                     expected.tensor(role)),
                1e-12)
          << role;
      ++compared;
    }
    EXPECT_EQ(compared, 16);
  }
}

}  // namespace
}  // namespace cytra
