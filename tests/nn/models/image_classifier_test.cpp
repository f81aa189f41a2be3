// The encoders of all networks, their weights, and where in an image classes are seen.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "io/safetensors.h"
#include "nn/classifier.h"
#include "nn/weights.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

struct EncoderCase {
  const char* backbone;
  int64_t features, side;  // of its deepest level, for images of 32 x 32
};

class EveryEncoder : public testing::TestWithParam<EncoderCase> {};

std::string classifier_of(const std::string& backbone, const std::string& more = "") {
  return "{_target_: ImageClassifier, out_channels: 3, backbone: {" + backbone + "}" + more + "}";
}

std::shared_ptr<nn::Classifier> make_classifier(const std::string& yaml) {
  return std::dynamic_pointer_cast<nn::Classifier>(make<nn::Model>(yaml));
}

TEST_P(EveryEncoder, GivesItsDeepestFeaturesAndLearnsAsAWhole) {
  at::manual_seed(0);
  const auto model = make_classifier(classifier_of(GetParam().backbone));
  const at::Tensor image = at::rand({2, 1, 32, 32});
  const at::Tensor features = model->features(image);
  EXPECT_EQ(features.sizes(),
            (std::vector<int64_t>{2, GetParam().features, GetParam().side, GetParam().side}));
  const at::Tensor numbers = (*model)(image);
  EXPECT_EQ(numbers.sizes(), (std::vector<int64_t>{2, 3, 1, 1}));
  numbers.square().sum().backward();
  for (const auto& parameter : model->named_parameters()) {
    if (parameter.key().find("norm_cross_attn") != std::string::npos) continue;  // MONAI's, unused
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
  }
}

/// The network's own names: its weights fit, whatever else the file holds.
TEST_P(EveryEncoder, TakesTheWeightsOfTheWholeNetwork) {
  at::manual_seed(1);
  const auto whole = make<nn::Model>(std::string("{") + GetParam().backbone + "}");
  const test::TmpDir dir;
  const std::string path = dir / "whole.safetensors";
  io::TensorViews views;
  const auto state = nn::state_of(*whole);
  for (const auto& [name, tensor] : state) views[name] = nn::view_of(tensor.contiguous());
  io::write_safetensors(path, views, {});
  const auto model =
      make_classifier(classifier_of(GetParam().backbone, ", encoder_ckpt: '" + path + "'"));
  std::size_t equal = 0;
  for (const auto& parameter : model->named_parameters()) {
    std::string name = parameter.key();
    if (name.find("encoder.") != 0) continue;
    name.erase(0, std::string("encoder.").size());
    if (name.find("vit.") == 0) name.erase(0, std::string("vit.").size());
    ASSERT_EQ(state.count(name), 1U) << name;
    EXPECT_TRUE(at::equal(parameter.value(), state.at(name))) << name;
    ++equal;
  }
  EXPECT_EQ(equal + 2, model->parameters().size());  // those of the head are its own
}

INSTANTIATE_TEST_SUITE_P(
    ImageClassifier,
    EveryEncoder,
    testing::Values(
        EncoderCase{"_target_: AttentionUnet, channels: [4, 8, 16], strides: [2, 2]", 16, 8},
        EncoderCase{"_target_: BasicUNet, spatial_dims: 2, features: [4, 4, 8, 8, 12, 4]", 12, 2},
        EncoderCase{"_target_: DynUNet, filters: [4, 8, 16]", 16, 8},
        EncoderCase{"_target_: MedNeXt, spatial_dims: 2, init_filters: 4, blocks_down: [1, 2], "
                    "blocks_up: [1, 1], "
                    "blocks_bottleneck: 1, encoder_expansion_ratio: [2, 2], "
                    "decoder_expansion_ratio: [2, 2], bottleneck_expansion_ratio: 2",
                    16,
                    8},
        EncoderCase{"_target_: PlainConvUNet, n_stages: 3, features_per_stage: [4, 8, 16]", 16, 8},
        EncoderCase{"_target_: ResidualEncoderUNet, n_stages: 3, features_per_stage: [4, 8, 16], "
                    "n_blocks_per_stage: [1]",
                    16,
                    8},
        EncoderCase{"_target_: SegResNet, spatial_dims: 2, init_filters: 8, blocks_down: [1, 2], "
                    "blocks_up: [1], "
                    "dropout_prob: 0.1",
                    16,
                    16},
        EncoderCase{
            "_target_: SegResNetDS, spatial_dims: 2, init_filters: 8, blocks_down: [1, 1, 2]",
            32,
            8},
        EncoderCase{"_target_: UNet, channels: [4, 8, 16], strides: [2, 2]", 16, 8},
        EncoderCase{"_target_: UNet, channels: [4, 8], strides: [2], num_res_units: 2", 8, 16},
        EncoderCase{"_target_: VNet, spatial_dims: 2", 256, 2},
        EncoderCase{"_target_: MAE, spatial_dims: 2, img_size: [32], patch_size: [8], emb_dim: 24, "
                    "encoder_layer: 2, encoder_head: 2, decoder_layer: 1, decoder_dim: 24, "
                    "decoder_head: 2",
                    24,
                    4},
        EncoderCase{"_target_: ViT, spatial_dims: 2, img_size: [32], patch_size: [8], hidden_size: "
                    "24, mlp_dim: 32, num_layers: 2, num_heads: 2",
                    24,
                    4}));

TEST(ImageClassifier, SeesClassesWhereGradCamDoes) {
  for (const char* pooling : {"avg", "max"}) {
    SCOPED_TRACE(pooling);
    at::manual_seed(2);
    const auto model =
        make_classifier(classifier_of("_target_: DynUNet, spatial_dims: 3, filters: [4, 8, 16]",
                                      std::string(", pooling: ") + pooling));
    model->eval();
    const at::Tensor features =
        model->features(at::rand({2, 1, 8, 16, 16})).detach().requires_grad_();
    const at::Tensor numbers = model->numbers(features), maps = model->saliency(features);
    ASSERT_EQ(maps.sizes(), (std::vector<int64_t>{2, 3, 2, 4, 4}));
    for (int64_t k = 0; k < 3; ++k) {
      numbers.select(1, k).sum().backward({}, /*retain_graph=*/true);
      const at::Tensor weights = features.grad().mean({2, 3, 4}, /*keepdim=*/true);
      const at::Tensor expected = (weights * features).sum(1).relu();
      EXPECT_LT((maps.select(1, k) - expected).abs().max().item<double>(), 1e-6);
      EXPECT_GT(expected.max().item<double>(), 0);
      features.mutable_grad() = at::Tensor();
    }
  }
}

TEST(ImageClassifier, RefusesANormThatLeavesNothing) {
  const std::string backbone = "_target_: DynUNet, filters: [4, 8, 16]";
  const auto model = make_classifier(classifier_of(backbone));
  EXPECT_NE(message_of<DataError>([&] {
              (*model)(at::rand({2, 1, 4, 4}));
            }).find("instance norm of"),
            std::string::npos);
  const auto batch = make_classifier(classifier_of(backbone + ", norm_name: batch"));
  EXPECT_EQ((*batch)(at::rand({2, 1, 4, 4})).size(1), 3);
}

TEST(ImageClassifier, NamesTheEncodersThatAreKnown) {
  EXPECT_NE(message_of<ConfigError>([] {
              make_classifier(classifier_of("_target_: UNETR, spatial_dims: 2, img_size: [32]"));
            }).find("no encoder of UNETR is known; expected mae"),
            std::string::npos);
}

TEST(ImageClassifier, SaysWhatWeightsMustBeOf) {
  const test::TmpDir dir;
  const std::string path = dir / "other.safetensors";
  const at::Tensor values = at::rand({3});
  io::write_safetensors(path, {{"conv.weight", nn::view_of(values)}}, {});
  EXPECT_NE(
      message_of<DataError>([&] {
        make_classifier(classifier_of("_target_: SegResNet", ", encoder_ckpt: '" + path + "'"));
      }).find("model.encoder_ckpt"),
      std::string::npos);
}

}  // namespace
}  // namespace cytra
