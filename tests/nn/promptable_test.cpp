// Segment Anything's prompts and squares equal segment_anything's: tests/golden/promptable.json.
#include "nn/promptable.h"

#include <fstream>
#include <iterator>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/json.h"
#include "config/registry.h"
#include "nn/weight_shapes.h"
#include "nn/weights.h"
#include "tests/support/message_of.h"
#include "tests/support/network_golden.h"

namespace cytra {
namespace {

const config::Node& promptable_golden() {
  static const config::Node golden = [] {
    const std::string path = CYTRA_SOURCE_DIR "/tests/golden/promptable.json";
    std::ifstream file(path);
    return config::parse_yaml(
        std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()), path);
  }();
  return golden;
}

std::shared_ptr<nn::PromptableModel> filled_sam() {
  auto model = std::dynamic_pointer_cast<nn::PromptableModel>(
      make<nn::Model>(promptable_golden().at("model")));
  test::fill(nn::state_of(*model));
  model->eval();
  return model;
}

void expect_values(const at::Tensor& found, const config::Node& expected) {
  ASSERT_EQ(found.sizes().vec(), expected.get<std::vector<int64_t>>("shape"));
  const auto values = expected.get<std::vector<double>>("values");
  const at::Tensor flat = found.contiguous().flatten().to(at::kDouble);
  const int64_t step = std::max<int64_t>(1, flat.numel() / 64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(flat[static_cast<int64_t>(i) * step].item<double>(),
                values[i],
                1e-4 * expected.get<double>("largest"))
        << "value " << i;
  }
}

nn::Prompts prompts_named(const std::string& name) {
  nn::Prompts prompts;
  if (name.find("boxes") != std::string::npos)
    prompts.boxes = at::tensor({3.5F, 4.0F, 20.0F, 31.25F, 0.0F, 10.0F, 12.0F, 39.0F}).view({2, 4});
  if (name.find("points") != std::string::npos) {
    prompts.points =
        at::tensor({5.0F, 6.0F, 30.5F, 2.0F, 20.0F, 20.0F, 39.0F, 0.0F}).view({2, 2, 2});
    prompts.labels = at::tensor({1, 0, 1, -1}).view({2, 2});
  }
  if (name.find("masks") != std::string::npos)
    prompts.masks = test::pattern({2, 1, 40, 40}, 8).to(at::kFloat);
  return prompts;
}

TEST(Promptable, EveryKindOfPromptGivesThePeersMasks) {
  const at::NoGradGuard no_grad;
  const auto model = filled_sam();
  const at::Tensor embedding =
      model->encode(test::pattern({1, 3, 40, 40}, 7).to(at::kFloat)).expand({2, -1, -1, -1});
  for (const auto& [name, expected] : promptable_golden().at("prompted").map) {
    SCOPED_TRACE(name);
    const nn::PromptedMasks all = model->decode(embedding, prompts_named(name), true);
    expect_values(all.logits, expected.list[0]);
    expect_values(all.quality, expected.list[1]);
    const nn::PromptedMasks one = model->decode(embedding, prompts_named(name));
    EXPECT_TRUE(one.logits.allclose(all.logits.slice(1, 0, 1), 1e-5, 1e-6));
    EXPECT_TRUE(one.quality.equal(all.quality.slice(1, 0, 1)));
  }
}

TEST(Promptable, AnImagesWayIntoTheSquareAndBackIsThePeers) {
  for (const config::Node& square : promptable_golden().at("squares").list) {
    const auto size = square.get<std::vector<int64_t>>("size");
    const at::Tensor image =
        ((test::pattern({3, size[0], size[1]}, 9) + 1) * 127.5).floor().to(at::kByte);
    const nn::SquareImage prepared = nn::square_image(image, 40, nn::kSamPixels);
    expect_values(prepared.image, square.at("image"));
    const at::Tensor box =
        at::tensor({1.5, 2.0, static_cast<double>(size[1]), static_cast<double>(size[0])});
    const at::Tensor expected = at::tensor(square.get<std::vector<double>>("box"), at::kFloat);
    EXPECT_TRUE(prepared.placement.boxes(box.unsqueeze(0))[0].allclose(expected));
    const at::Tensor logits = test::pattern({2, 20, 20}, 10).to(at::kFloat);
    expect_values(nn::upscale_masks(logits, prepared.placement, 40), square.at("masks"));
  }
}

TEST(Promptable, ImagesOfAnyTypeAndChannelsBecomeThreeChannels) {
  const at::Tensor grey = (test::pattern({1, 12, 9}, 1) * 30000 + 30000).to(at::kInt);
  const at::Tensor own = nn::square_image(grey, 12, {}).image;
  EXPECT_TRUE(own[0].equal(own[2]));
  EXPECT_NEAR(own[0].slice(1, 0, 9).mean().item<double>(), 0, 1e-5);
  EXPECT_NEAR(own[0].slice(1, 0, 9).std().item<double>(), 1, 1e-2);
  EXPECT_EQ(own.slice(2, 9).abs().max().item<double>(), 0) << "padding";
  const at::Tensor bytes = nn::square_image(grey, 12, {{0, 0, 0}, {1, 1, 1}}).image;
  EXPECT_NEAR(bytes.max().item<double>(), 255, 1e-3) << "stretched: not bytes";
  EXPECT_EQ(nn::square_image(at::ones({2, 4, 4}), 4, {}).image[2].abs().max().item<double>(), 0);
  EXPECT_EQ(nn::square_image(at::ones({5, 4, 4}), 8, {}).image.size(0), 3);
  EXPECT_EQ(nn::square_image(at::ones({1, 1, 300}), 8, {}).placement.scaled_height, 1);
  EXPECT_THROW(nn::square_image(at::ones({4, 4}), 8, {}), DataError);
  EXPECT_THROW(nn::square_image(at::ones({1, 0, 4}), 8, {}), DataError);
}

TEST(Promptable, LabelsGoWhereTheirPixelsGo) {
  at::Tensor labels = at::zeros({10, 20}, at::kInt);
  labels.slice(0, 2, 6).slice(1, 4, 12).fill_(7);
  const nn::Placement placement = nn::place_in_square(10, 20, 40);
  const at::Tensor square = nn::square_labels(labels, placement, 40);
  at::Tensor expected = at::zeros({40, 40}, at::kInt);
  expected.slice(0, 4, 12).slice(1, 8, 24).fill_(7);
  EXPECT_TRUE(square.equal(expected));
}

using NamesAndShapes = std::map<std::string, std::vector<int64_t>>;

/// Those of a golden list but for blocks from `depth` on, all of which are alike.
NamesAndShapes names_of(const config::Node& golden, int64_t depth) {
  NamesAndShapes names;
  for (const auto& [name, shape] : golden.map) {
    const std::size_t block = name.find(".blocks.");
    if (block == std::string::npos || std::stoll(name.substr(block + 8)) < depth)
      names[name] = shape.as<std::vector<int64_t>>();
  }
  return names;
}

/// The sizes of configs/model/NAME.yaml, with fewer blocks, which would take gigabytes.
config::Node first_blocks_of(const std::string& name, int64_t depth) {
  config::Node model = config::load_yaml(CYTRA_SOURCE_DIR "/configs/model/" + name + ".yaml");
  model.set("depth", config::Node::make_integer(depth));
  std::vector<int64_t> whole;
  for (const auto block : model.get<std::vector<int64_t>>("global_attn_indexes"))
    if (block < depth) whole.push_back(block);
  model.set("global_attn_indexes", config::Node::make_list(whole));
  return model;
}

NamesAndShapes names_of(const config::Node& model) {
  NamesAndShapes names;
  const auto made = make<nn::Model>(model);
  for (const auto& [name, tensor] : nn::state_of(*made)) names[name] = tensor.sizes().vec();
  return names;
}

TEST(Promptable, ConfigurationsHaveTheNamesAndShapesOfThePublishedWeights) {
  EXPECT_EQ(names_of(config::parse_yaml("_target_: Sam", "Sam")),
            names_of(promptable_golden().at("vit_b"), 12));
  for (const auto& [config, name, depth] : {std::tuple("sam", "vit_b", 3),
                                            std::tuple("sam_vit_l", "vit_l", 6),
                                            std::tuple("sam_vit_h", "vit_h", 8)}) {
    EXPECT_EQ(names_of(first_blocks_of(config, depth)),
              names_of(promptable_golden().at(name), depth))
        << name;
  }
}

/// What the shapes of published weights say is what configurations have.
TEST(Promptable, ShapesTellTheSizesOfTheEncoder) {
  const std::string cellpose = CYTRA_SOURCE_DIR "/tests/golden/cellpose.json";
  const config::Node cpsam = config::parse_json(read_file(cellpose), cellpose).at("cpsam");
  const bool are_cellposes = true;
  for (const auto& [config, golden, name, is_cellposes] :
       {std::tuple("sam", promptable_golden().at("vit_b"), "image_encoder.", !are_cellposes),
        std::tuple("sam_vit_l", promptable_golden().at("vit_l"), "image_encoder.", !are_cellposes),
        std::tuple("sam_vit_h", promptable_golden().at("vit_h"), "image_encoder.", !are_cellposes),
        std::tuple("cpsam", cpsam, "encoder.", are_cellposes)}) {
    io::TensorViews tensors;
    for (const auto& [key, shape] : golden.map)
      tensors["module." + key].shape = shape.template as<std::vector<int64_t>>();
    const nn::WeightShapes shapes("file", tensors, "module.", config);
    const config::Node expected =
        config::load_yaml(CYTRA_SOURCE_DIR "/configs/model/" + std::string(config) + ".yaml");
    for (const auto& [key, value] : nn::sam_encoder_options(shapes, name, is_cellposes).map)
      EXPECT_EQ(config::to_yaml(value), config::to_yaml(expected.at(key))) << config << " " << key;
  }
  EXPECT_EQ(names_of(first_blocks_of("cpsam", 6)), names_of(cpsam, 6));
}

TEST(Promptable, SizesThatDoNotFitAreRefused) {
  const std::string message =
      message_of<ConfigError>([] { make<nn::Model>("{_target_: Sam, img_size: 100}"); });
  EXPECT_NE(message.find("Sam: img_size=100: expected a multiple of patch_size=16"),
            std::string::npos)
      << message;
  EXPECT_THROW(make<nn::Model>("{_target_: Sam, depth: 4}"), ConfigError);
  EXPECT_THROW(make<nn::Model>("{_target_: Sam, out_chans: 12}"), ConfigError);
  EXPECT_THROW(make<nn::Model>("{_target_: Sam, pixel_mean: [1.0]}"), ConfigError);
}

}  // namespace
}  // namespace cytra
