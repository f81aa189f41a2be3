// Bundles of MONAI; what one predicts is tests/tools/models_test.cpp.
#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "inference/models/trained_model.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;

class Bundle : public ::testing::Test {
 protected:
  Bundle() : path_(dir_ / "a bundle") {
    fs::copy(CYTRA_SOURCE_DIR "/tests/golden/models/a bundle", path_, fs::copy_options::recursive);
  }
  LoadedModel load() const {
    CheckpointOptions options;
    options.ckpt_path = {path_};
    return load_models(options).at(0);
  }
  /// What is said after `from` in configs/NAME became `to`.
  std::string error_with(const std::string& name, const std::string& from, const std::string& to) {
    const std::string file = path_ + "/configs/" + name, before = read_file(file);
    const std::size_t at = before.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    std::string after = before;
    std::ofstream(file) << after.replace(at, from.size(), to);
    std::string message = message_of<Error>([&] { load(); });
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    std::ofstream(file) << before;
    return message;
  }
  test::TmpDir dir_;
  std::string path_;
};

TEST_F(Bundle, ItsConfigurationBecomesOurs) {
  const LoadedModel model = load();
  EXPECT_EQ(model.in_channels, 1);
  EXPECT_EQ(model.out_channels, 2);
  EXPECT_EQ(model.divisor, (std::vector<int64_t>{2, 2, 2}));
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(model.config.get<Sizes>("task.inference_args.roi_size"), (Sizes{4, 12, 8}));
  EXPECT_EQ(model.config.get<double>("task.inference_args.overlap"), 0.5);
  EXPECT_EQ(model.config.get<bool>("task.multilabel"), false);
  EXPECT_EQ(model.config.get<std::string>("task.x_key"), "image");
  const auto& steps = model.config.at("data.transforms.valid").list;
  ASSERT_EQ(steps.size(), 6U);  // one is switched off
  EXPECT_EQ(steps[0].get<int64_t>("spatial_dims"), 3);
  EXPECT_EQ(steps[3].get<Sizes>("spatial_size"), (Sizes{4, 12, 20}));
  EXPECT_EQ(steps[2].get<std::string>("axcodes"), "RAS");
}

TEST_F(Bundle, WhatIsNotKnownIsNamedWithItsPlace) {
  const std::string inference = path_ + "/configs/inference.json:";
  EXPECT_EQ(error_with("inference.json", "\"Orientationd\"", "\"Orientatedd\""),
            inference +
                "45:7: the transform 'Orientatedd' is not one of ours. Did you mean "
                "'Orientationd'?");
  const std::string python = error_with("inference.json", "\"RAS\"", "\"$'RAS' if True else 1\"");
  EXPECT_EQ(python.find(inference + "48:20: "), 0U) << python;
  EXPECT_NE(python.find("is Python, which is not run"), std::string::npos) << python;
  EXPECT_NE(error_with("inference.json", "\"@patch\"", "\"@pitch\"").find("there is no '@pitch'"),
            std::string::npos);
  EXPECT_NE(error_with("inference.json", "\"@patch\"", "\"@inferer\"").find("lead to themselves"),
            std::string::npos);
  EXPECT_NE(error_with("inference.json", "\"SlidingWindowInferer\"", "\"SaliencyInferer\"")
                .find("the inferer 'SaliencyInferer' is not one of ours"),
            std::string::npos);
  EXPECT_NE(
      error_with("metadata.json", "\"num_channels\": 1", "\"channels\": 1").find("num_channels"),
      std::string::npos);
  EXPECT_NE(error_with("metadata.json", "\"version\"", "{").find("metadata.json:"),
            std::string::npos);
}

TEST_F(Bundle, AFolderThatIsNoneSaysWhatIsMissing) {
  fs::remove_all(path_ + "/models");
  EXPECT_EQ(message_of<DataError>([&] { load(); }),
            path_ +
                ": neither models/model.ts nor models/model.pt with network_def in "
                "configs/inference.json");
  fs::remove_all(path_ + "/configs");
  EXPECT_EQ(message_of<DataError>([&] { load(); }),
            path_ +
                ": a folder without configs/metadata.json; expected a bundle of MONAI, or a "
                "checkpoint");
}

TEST_F(Bundle, NetworksOfOursTakeItsWeights) {
  fs::remove(path_ + "/models/model.ts");
  const std::string options =
      "spatial_dims: 3, in_channels: 1, out_channels: 2, filters: [2, 4], kernel_size: [[1, 3, 3], "
      "[3, 1, 3]], strides: [[1, 1, 1], [2, 1, 2]], upsample_kernel_size: [[2, 1, 2]]";
  const auto network = make<nn::Model>("{_target_: DynUNet, " + options + "}");
  network->eval();
  std::map<std::string, at::Tensor> kept;
  io::TensorViews views;
  for (const auto& [name, tensor] : nn::state_of(*network)) {
    kept[name] = tensor.detach().contiguous();
    views["net." + name] = nn::view_of(kept[name]);
  }
  io::write_safetensors(path_ + "/models/model.pt", views, {});
  const std::string file = path_ + "/configs/inference.json";
  fs::remove(file);
  write_file(path_ + "/configs/inference.yaml",
             "network_def: {_target_: DynUNet, norm_name: [instance, {affine: true}], "
             "deep_supervision: false, " +
                 options + "}\n");
  const LoadedModel model = load();
  EXPECT_EQ(model.divisor, (std::vector<int64_t>{2, 1, 2}));
  const c10::InferenceMode inference_mode;
  const at::Tensor windows = at::rand({1, 1, 4, 5, 6}), turned = windows.permute({0, 1, 4, 3, 2});
  EXPECT_LT(test::max_difference(model.forward(windows).at(0),
                                 network->forward(turned).permute({0, 1, 4, 3, 2})),
            1e-5);
  write_file(path_ + "/configs/inference.yaml", "network_def: {_target_: DynUNett}\n");
  const std::string message = message_of<ConfigError>([&] { load(); });
  EXPECT_NE(message.find("no model 'DynUNett', expected a registered one. Did you mean 'DynUNet'?"),
            std::string::npos)
      << message;
}

TEST_F(Bundle, NumbersOfStrangersHaveRanges) {
  std::string bomb = "{\"preprocessing\": \"@a0\"";
  for (int level = 0; level < 14; ++level) {  // 10^14 values
    bomb += ", \"a" + std::to_string(level) + "\": [";
    for (int i = 0; i < 10; ++i)
      bomb += (i == 0 ? "\"@a" : ", \"@a") + std::to_string(level + 1) + "\"";
    bomb += "]";
  }
  const std::string file = path_ + "/configs/inference.json", before = read_file(file);
  std::ofstream(file) << bomb << ", \"a14\": 1}";
  EXPECT_NE(message_of<ConfigError>([&] { load(); }).find("references that stand for more than"),
            std::string::npos);
  std::ofstream(file) << before;
  for (const char* channels : {"1099511627776", "65537"}) {
    EXPECT_NE(
        error_with(
            "metadata.json", "\"num_channels\": 1", std::string("\"num_channels\": ") + channels)
            .find("expected 65536 at most"),
        std::string::npos);
  }
  fs::rename(path_ + "/models/model.ts", path_ + "/models/kept");
  ASSERT_EQ(::mkfifo((path_ + "/fifo").c_str(), 0600), 0);
  fs::create_symlink("../fifo", path_ + "/models/model.ts");
  EXPECT_NE(message_of<DataError>([&] { load(); }).find("expected a file"), std::string::npos);
}

}  // namespace
}  // namespace cytra::inference
