// What the golden networks do not show of networks of convolutions.
#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/model.h"
#include "tests/support/network_golden.h"

namespace cytra {
namespace {

const std::string kRun = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/nnunet";

std::string planned(const std::string& more) {
  return "{_target_: ResidualEncoderUNet, out_channels: 3, plans: " + kRun + "/plans.json, " +
         more + "}";
}

std::string refusal(const std::string& yaml) {
  try {
    make<nn::Model>(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "taken";
}

TEST(PlansOfNnUNet, GiveTheNetworkOfItsCheckpoint) {
  for (const char* configuration : {"2d", "2d_more"}) {
    const auto model = make<nn::Model>(planned(std::string("configuration: ") + configuration));
    EXPECT_EQ(model->divisor(), (std::vector<int64_t>{4, 2}));
    nn::load_weights(kRun + "/checkpoint_final.pth", *model);
    model->eval();
    const config::Node golden = config::load_yaml(kRun + "/logits.json");
    const at::Tensor image =
        test::pattern(golden.get<std::vector<int64_t>>("image"), 1'000'003).to(at::kFloat);
    const auto expected = golden.get<std::vector<double>>("logits");
    const at::NoGradGuard no_grad;
    const at::Tensor logits = (*model)(image).flatten();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(logits[static_cast<int64_t>(i) * golden.get<int64_t>("every")].item<double>(),
                  expected[i],
                  1e-4 * 25);  // of the largest
    }
  }
}

TEST(PlansOfNnUNet, AreRefusedWhereTheyDoNotFit) {
  EXPECT_NE(refusal(planned("configuration: 2D")).find("there are 2d, 2d_more"), std::string::npos);
  EXPECT_NE(
      refusal(planned("configuration: 2d, spatial_dims: 3")).find("'2d' is 2D, spatial_dims is 3"),
      std::string::npos);
  EXPECT_NE(refusal("{_target_: PlainConvUNet, configuration: 2d, plans: " + kRun + "/plans.json}")
                .find("set model._target_ to it"),
            std::string::npos);
}

TEST(ConvolutionalModels, RefuseOptionsThatDoNotFit) {
  for (const char* yaml : {"{_target_: UNet, channels: [4, 8, 8], strides: [2]}",
                           "{_target_: UNet, kernel_size: 2}",
                           "{_target_: UNet, act: rellu}",
                           "{_target_: UNet, norm: group}",
                           "{_target_: UNet, norm: [batch, {epsilon: 1}]}",
                           "{_target_: UNet, adn_ordering: NX}",
                           "{_target_: BasicUNet, features: [4, 4]}",
                           "{_target_: SegResNet, blocks_up: [1]}",
                           "{_target_: SegResNet, init_filters: 6}",
                           "{_target_: SegResNetDS, resolution: [1, 1]}",
                           "{_target_: VNet, in_channels: 3}",
                           "{_target_: MedNeXt, blocks_up: [1]}",
                           "{_target_: DynUNet, deep_supervision: true, deep_supr_num: 2}",
                           "{_target_: ResidualEncoderUNet, strides: [1, 2]}"}) {
    EXPECT_NE(refusal(yaml), "taken") << yaml;
  }
  EXPECT_NE(refusal("{_target_: UNet, act: rellu}").find("relu"), std::string::npos);
}

TEST(ConvolutionalModels, DropInTrainingAlone) {
  for (const char* yaml : {"{_target_: UNet, dropout: 0.5, act: relu}",
                           "{_target_: UNet, dropout: 0.5, norm: batch, num_res_units: 1}",
                           "{_target_: BasicUNet, spatial_dims: 2, dropout: 0.5}",
                           "{_target_: AttentionUnet, dropout: 0.5}",
                           "{_target_: SegResNet, spatial_dims: 2, dropout_prob: 0.5}",
                           "{_target_: PlainConvUNet, n_stages: 3, dropout: 0.5}",
                           "{_target_: DynUNet, dropout: 0.5}"}) {
    const auto model = make<nn::Model>(yaml);
    const at::NoGradGuard no_grad;
    const at::Tensor image = at::rand({1, 1, 32, 32});
    const auto farthest = [&] {  // of some passes from the first
      const at::Tensor first = (*model)(image);
      double most = 0;
      for (int i = 0; i < 4; ++i)
        most = std::max(most, ((*model)(image)-first).abs().max().item<double>());
      return most / first.abs().max().item<double>();
    };
    EXPECT_GT(farthest(), 1e-3) << yaml;
    model->eval();
    EXPECT_LT(farthest(), 1e-5) << yaml;  // a processor's sums may depend on where memory lies
  }
}

TEST(ConvolutionalModels, HaveCoarserOutputsInTrainingAlone) {
  for (const char* yaml :
       {"{_target_: DynUNet, deep_supervision: true}",
        "{_target_: SegResNetDS, spatial_dims: 2, out_channels: 1, init_filters: 4, dsdepth: 2}",
        "{_target_: MedNeXt, spatial_dims: 2, out_channels: 1, init_filters: 4, blocks_down: [1], "
        "blocks_up: [1], deep_supervision: true}",
        "{_target_: ResidualEncoderUNet, n_stages: 3, deep_supervision: true}"}) {
    const auto model = make<nn::Model>(yaml);
    const at::Tensor image = at::rand({1, 1, 32, 32});
    const std::vector<at::Tensor> outputs = model->all(image);
    ASSERT_EQ(outputs.size(), 2U) << yaml;
    EXPECT_EQ(outputs[0].size(-1), 32);
    EXPECT_EQ(outputs[1].size(-1), 16);
    model->eval();
    EXPECT_EQ(model->all(image).size(), 1U) << yaml;
  }
}

}  // namespace
}  // namespace cytra
