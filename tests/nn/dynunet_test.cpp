#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "inference/windows/sliding_window.h"
#include "nn/model.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

std::shared_ptr<nn::Model> model_of(const test::Golden& golden) {
  config::Node options = config::Node::make_map();
  const std::vector<std::string> keys{"spatial_dims",
                                      "in_channels",
                                      "out_channels",
                                      "kernel_size",
                                      "strides",
                                      "upsample_kernel_size",
                                      "filters",
                                      "res_block",
                                      "trans_bias"};
  for (const auto& [key, value] : golden.at("forward").options().map) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) options.set(key, value);
  }
  auto model = make<nn::Model>(test::component("monai.networks.nets.DynUNet", options));
  nn::load_state(*model, golden.file.tensors(), golden.path, "model.", nn::Fit::all);
  model->eval();
  return model;
}

class DynUNetGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(DynUNetGolden, LogitsAndGradientsEqualMonai) {
  const test::Golden golden(GetParam());
  const test::GoldenCase& forward = golden.at("forward");
  const auto model = model_of(golden);
  const at::Tensor logits = (*model)(forward.tensor("input"));
  EXPECT_LT(test::max_difference(logits, forward.tensor("logits")), 1e-4);
  logits.square().mean().backward();
  int64_t compared = 0;
  for (const auto& [name, parameter] : nn::state_of(*model)) {
    const auto expected = golden.file.tensors().find("grad." + name);
    if (expected == golden.file.tensors().end()) continue;
    EXPECT_LT(test::max_difference(parameter.grad(), nn::tensor_of(expected->second, name)), 1e-4)
        << name;
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

TEST_P(DynUNetGolden, ChannelsLastGivesTheSameLogits) {
  const test::Golden golden(GetParam());
  const auto model = model_of(golden);
  model->settings.channels_last = true;
  nn::place(*model, at::kCPU);
  EXPECT_TRUE(model->channels_last);
  const at::NoGradGuard no_grad;
  EXPECT_LT(test::max_difference((*model)(golden.at("forward").tensor("input")),
                                 golden.at("forward").tensor("logits")),
            1e-4);
}
INSTANTIATE_TEST_SUITE_P(Peers,
                         DynUNetGolden,
                         ::testing::Values("dynunet_2d",
                                           "dynunet_3d",
                                           "dynunet_res_2d",
                                           "dynunet_res_identity_2d",
                                           "dynunet_anisotropic_3d"));

class DynUNetWindows : public ::testing::TestWithParam<const char*> {};

TEST_P(DynUNetWindows, WholeImageLogitsEqualMonai) {
  const test::Golden golden(GetParam());
  const test::GoldenCase& image = golden.at("image");
  const auto model = model_of(golden);
  const at::NoGradGuard no_grad;
  auto options = config::parse<inference::SlidingWindowOptions>(image.options());
  const at::Tensor logits = inference::sliding_window(
      image.tensor("image"), [&](const at::Tensor& x) { return (*model)(x); }, options);
  EXPECT_LT(test::max_difference(logits, image.tensor("image_logits")), 1e-4);
}
INSTANTIATE_TEST_SUITE_P(Peers, DynUNetWindows, ::testing::Values("dynunet_2d", "dynunet_3d"));

TEST(DynUNet, RefusesShapesWithOneClearLine) {
  const auto model =
      make<nn::Model>(config::parse_yaml("{_target_: DynUNet, in_channels: 1}", "test"));
  EXPECT_THROW((*model)(at::zeros({1, 2, 16, 16})), DataError);
  EXPECT_THROW((*model)(at::zeros({1, 1, 16, 16, 16})), DataError);
  EXPECT_THROW((*model)(at::zeros({1, 1, 18, 16})), DataError);
}

TEST(DynUNet, RefusesOptionsThatDoNotFit) {
  for (const char* text : {"{_target_: DynUNet, filters: [8, 16], strides: [1, 2, 2]}",
                           "{_target_: DynUNet, upsample_kernel_size: [2, 3]}",
                           "{_target_: DynUNet, spatial_dims: 4}",
                           "{_target_: DynUnet}",
                           "{_target_: DynUNet, filter: [8]}"}) {
    EXPECT_THROW(make<nn::Model>(config::parse_yaml(text, "test")), ConfigError) << text;
  }
}

TEST(Weights, NamesWhatDoesNotFit) {
  const test::Golden golden("dynunet_2d");
  const auto other = make<nn::Model>(
      config::parse_yaml("{_target_: DynUNet, filters: [4, 6, 8], trans_bias: true}", "test"));
  try {
    nn::load_state(*other, golden.file.tensors(), golden.path, "model.", nn::Fit::all);
    FAIL() << "loaded";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("upsamples.0.transp_conv.conv.bias"),
              std::string::npos)
        << error.what();
  }
  nn::load_state(
      *other, golden.file.tensors(), golden.path, "model.", nn::Fit::names);  // what fits
  const auto wider =
      make<nn::Model>(config::parse_yaml("{_target_: DynUNet, filters: [8, 16, 32]}", "test"));
  EXPECT_THROW(nn::load_state(*wider, golden.file.tensors(), golden.path, "model.", nn::Fit::names),
               DataError);
}

}  // namespace
}  // namespace cytra
