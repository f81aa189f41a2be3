#include "inference/models/trained_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "inference/engines/engine.h"
#include "inference/predictor/averages.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

/// A file of weights and the YAML of a training, as `train` would have it.
class TrainedModelTest : public ::testing::Test {
 protected:
  std::string write_model(const std::string& name, const std::string& model) {
    const auto network = make<nn::Model>(model);
    std::map<std::string, at::Tensor> kept;
    io::TensorViews views;
    for (const auto& [key, tensor] : nn::state_of(*network)) {
      kept[key] = tensor.detach().contiguous();
      views[key] = nn::view_of(kept[key]);
    }
    io::write_safetensors(
        dir_ / name, views, {{"config", "{task: {model: " + model + ", x_key: raw, y_key: seg}}"}});
    return dir_ / name;
  }
  static std::vector<LoadedModel> load(const std::vector<std::string>& paths) {
    CheckpointOptions options;
    options.ckpt_path = paths;
    return load_models(options);
  }
  test::TmpDir dir_;
};

constexpr const char* kSmall = "{_target_: DynUNet, filters: [4, 8, 16], out_channels: 3}";

TEST_F(TrainedModelTest, SaysWhatItTakes) {
  const LoadedModel model = load({write_model("a.safetensors", kSmall)}).at(0);
  EXPECT_EQ(model.in_channels, 1);
  EXPECT_EQ(model.out_channels, 3);
  EXPECT_EQ(model.divisor, (std::vector<int64_t>{4, 4}));
  const at::Tensor windows = at::rand({2, 1, 8, 12});
  const at::InferenceMode inference_mode;
  const std::vector<at::Tensor> outputs = model.forward(windows);
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_EQ(test::max_difference(outputs[0], (*model.network)(windows)), 0);
}

TEST_F(TrainedModelTest, TheFingerprintIsThatOfWeightsAndModel) {
  const std::string path = write_model("a.safetensors", kSmall);
  EXPECT_EQ(load({path})[0].fingerprint, load({path})[0].fingerprint);
  EXPECT_NE(load({path})[0].fingerprint,
            load({write_model("b.safetensors", kSmall)})[0].fingerprint);
}

TEST_F(TrainedModelTest, SeveralAreAveraged) {
  const auto models = load({write_model("a.safetensors", kSmall),
                            write_model("b.safetensors", kSmall),
                            write_model("c.safetensors", kSmall)});
  const at::Tensor windows = at::rand({1, 1, 8, 8});
  const at::InferenceMode inference_mode;
  at::Tensor sum = at::zeros({1, 3, 8, 8});
  for (const LoadedModel& model : models) sum += model.forward(windows)[0];
  EXPECT_LT(test::max_difference(mean_of(models).forward(windows).at(0), sum / 3), 1e-6);
}

TEST_F(TrainedModelTest, EnginesRunIt) {
  const auto models =
      load({write_model("a.safetensors", kSmall), write_model("b.safetensors", kSmall)});
  for (const LoadedModel& model : models) model.place(c10::kCPU, false);
  const LoadedModel mean = mean_of(models);
  const at::InferenceMode inference_mode;
  const at::Tensor windows = at::rand({2, 1, 16, 16});
  for (const auto& forward : {models[0].forward, mean.forward}) {
    EngineOptions options;
    options.backend = "torchscript";
    const auto engine = make_engine({forward}, options, windows);
    EXPECT_LT(test::max_difference(engine->run(windows).at(0), forward(windows).at(0)), 1e-4);
  }
}

TEST_F(TrainedModelTest, APatternNamesTheFilesThatFit) {
  const std::string b = write_model("fold_b.ckpt", kSmall), a = write_model("fold_a.ckpt", kSmall);
  write_model("odd [1].ckpt", kSmall);
  const auto models = load({dir_ / "fold_*.ckpt"});
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[0].path, a);
  EXPECT_EQ(models[1].path, b);
  EXPECT_EQ(load({dir_ / "odd [1].ckpt"}).size(), 1U);  // a name, not a pattern
  EXPECT_EQ(message_of<ConfigError>([&] { load({dir_ / "fold_?_?.ckpt"}); }),
            "checkpoint.ckpt_path: no file fits " + (dir_ / "fold_?_?.ckpt"));
}

TEST_F(TrainedModelTest, ModelsThatDifferAreNotAveraged) {
  const std::string a = write_model("a.safetensors", kSmall),
                    b = write_model("b.safetensors", "{_target_: DynUNet, in_channels: 2}");
  EXPECT_EQ(message_of<ConfigError>([&] {
              load({a, b});
            }),
            "checkpoint.ckpt_path: the outputs of " + a + " and " + b +
                " can't be averaged: in_channels is 1 and 2");
}

}  // namespace
}  // namespace cytra::inference
