#include "nn/summary.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "device/convolution.h"
#include "nn/model.h"
#include "ops/conv/winograd/kernels.h"
#include "tests/support/at_least.h"
#include "tests/support/golden.h"

namespace cytra::nn {
namespace {

config::Node options_of(const config::Node& golden) {
  config::Node options = config::Node::make_map();
  for (const auto& [key, value] : golden.map) {
    if (key != "norm_name" && key != "act_name" && key != "deep_supervision")
      options.set(key, value);
  }
  return options;
}

std::shared_ptr<Model> small_model(bool gradient_checkpointing) {
  config::Node node = config::Node::make_map();
  node.set("_target_", config::Node::make_string("DynUNet"));
  node.set("gradient_checkpointing",
           config::parse_yaml(gradient_checkpointing ? "true" : "false", "test"));
  return make<Model>(node);
}

const SummaryRow& row_of(const Summary& summary, const std::string& name) {
  for (const SummaryRow& row : summary.rows) {
    if (row.name == name) return row;
  }
  throw std::out_of_range(name);
}

TEST(Summary, ParametersShapesAndFlopsEqualTorch) {
  const std::string path = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/summary.json";
  const config::Node golden = config::parse_yaml(read_file(path), path);
  for (const config::Node& entry : test::at_least(3, golden.at("cases").list)) {
    const auto model = make<Model>(
        test::component("monai.networks.nets.DynUNet", options_of(entry.at("options"))));
    std::vector<int64_t> shape;
    for (const config::Node& side : entry.at("shape").list) shape.push_back(side.as<int64_t>());
    const Summary summary = summarize(*model, shape, -1);
    ASSERT_GT(entry.at("modules").map.size(), 20U);
    for (const auto& [name, expected] : entry.at("modules").map) {
      const SummaryRow& row = row_of(summary, name == "output_block.conv" ? "output_block" : name);
      SCOPED_TRACE(entry.get<std::string>("name") + " " + name);
      EXPECT_EQ(row.parameters, expected.get<int64_t>("parameters"));
      EXPECT_EQ(row.flops, expected.get<int64_t>("flops"));
      std::vector<int64_t> in, out;
      for (const config::Node& side : expected.at("in").list) in.push_back(side.as<int64_t>());
      for (const config::Node& side : expected.at("out").list) out.push_back(side.as<int64_t>());
      EXPECT_EQ(row.in, in);
      EXPECT_EQ(row.out, out);
    }
  }
}

/// Matrix products and attention, called by functions that call each other.
struct Attention final : Model {
  Attention()
      : Model({}),
        weight(register_parameter("weight", at::randn({8, 8}))),
        norm(register_module("norm", std::make_shared<torch::nn::BatchNorm2dImpl>(1))) {}
  at::Tensor forward(const at::Tensor& image) override {
    const at::Tensor x = call(*norm, image).view({1, 2, -1, 8});  // (N, heads, S, E)
    return at::scaled_dot_product_attention(
        at::dropout(at::linear(x, weight), 0.5, is_training()), x, x);
  }
  std::vector<int64_t> divisor() const override { return {1, 1}; }
  int64_t in_channels() const override { return 1; }
  int64_t spatial_dims() const override { return 2; }
  int64_t out_channels() const override { return 1; }
  at::Tensor weight;
  std::shared_ptr<torch::nn::BatchNorm2dImpl> norm;
};

TEST(Summary, CountsMatrixProductsAndAttention) {
  const auto model = std::make_shared<Attention>();
  // By torch.utils.flop_counter's rules: 2 x 10 x 8 values with 8 weights each; per head two
  // products of 10 x 10 x 8.
  const int64_t linear = 2 * (2 * 10 * 8) * 8, attention = 2 * 2 * (2 * 10 * 10 * 8);
  EXPECT_EQ(summarize(*model, {1, 1, 20, 8}, 0).rows.at(0).flops, linear + attention);
}

TEST(Summary, LeavesTheModelAndTheGeneratorsAsTheyAre) {
  const auto model = std::make_shared<Attention>();
  model->eval();
  model->norm->train();
  model->weight.mutable_grad() = at::ones({8, 8});
  const at::Tensor mean = model->norm->running_mean.clone();
  at::manual_seed(3);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(3);
  summarize(*model, {1, 1, 20, 8}, -1);
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
  EXPECT_TRUE(at::equal(model->norm->running_mean, mean));
  EXPECT_EQ(model->norm->num_batches_tracked.item<int64_t>(), 0);
  EXPECT_TRUE(at::equal(model->weight.grad(), at::ones({8, 8})));
  EXPECT_FALSE(model->is_training());
  EXPECT_TRUE(model->norm->is_training());
  EXPECT_EQ(watcher, nullptr);
}

TEST(Summary, CountsWhatAutogradKeeps) {
  const auto model = small_model(false);
  const Summary summary = summarize(*model, {1, 1, 64, 64}, 1);
  const int64_t plane = 64 * 64 * 16 * 4;  // bytes of the first level's features
  // A norm that can be undone from its output keeps that alone, so a block of two convolutions
  // keeps two planes and its statistics (mean and deviation of 16 channels, twice, in float64).
  EXPECT_EQ(row_of(summary, "input_block").kept_bytes, 2 * plane + 2 * 2 * 16 * 8);
  EXPECT_EQ(summary.rows.at(0).checkpointed_bytes, 0);
  EXPECT_EQ(summary.gradient_bytes, summary.parameter_bytes);
  EXPECT_EQ(summary.optimizer_bytes, 2 * summary.parameter_bytes);
}

TEST(Summary, TellsWhatWinogradsConvolutionsSpare) {
  const auto model = small_model(false);
  const auto text = [&](device::ConvAlgorithm algorithm) {
    device::set_conv_algorithm(algorithm);
    const std::string all = to_text(summarize(*model, {1, 1, 64, 64}, 0));
    device::set_conv_algorithm(device::ConvAlgorithm::automatic);
    return all;
  };
  EXPECT_EQ(text(device::ConvAlgorithm::direct).find("Winograd"), std::string::npos);
  const bool is_there = ops::cpu::winograd_kernels() != nullptr;
  EXPECT_EQ(
      text(device::ConvAlgorithm::automatic).find(" % spared by Winograd's") != std::string::npos,
      is_there);
}

TEST(Summary, TellsWhatCheckpointingSaves) {
  const auto model = small_model(true);
  const Summary summary = summarize(*model, {1, 1, 64, 64}, 2);
  EXPECT_TRUE(model->settings.gradient_checkpointing);
  const SummaryRow& whole = summary.rows.at(0);
  EXPECT_EQ(whole.kept_bytes,
            summarize(*small_model(false), {1, 1, 64, 64}, 0).rows.at(0).kept_bytes);
  EXPECT_GT(whole.checkpointed_bytes, 0);
  EXPECT_LT(whole.checkpointed_bytes, whole.kept_bytes * 2 / 3);
  // Only its output stays: the input of the next block.
  EXPECT_EQ(row_of(summary, "input_block").checkpointed_bytes, 64 * 64 * 16 * 4);
}

TEST(Summary, TextHoldsTheTotals) {
  const auto model = small_model(true);
  for (at::Tensor& parameter : model->parameters()) parameter.set_requires_grad(false);
  model->parameters().back().set_requires_grad(true);
  const Summary summary = summarize(*model, {1, 1, 64, 64}, 2);
  const std::string text = to_text(summary);
  const auto has = [&](const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  has("(model)");
  has("downsamples.0 ");
  has(" frozen");
  has("1x16x64x64");
  has(" 1 of them trained");
  has("with gradient_checkpointing ");
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    EXPECT_LE(end - begin, 120U) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Summary, RefusesAShapeTheModelDoesNotTake) {
  const auto model = small_model(true);
  EXPECT_THROW(summarize(*model, {1, 1, 63, 64}, 1), DataError);
  EXPECT_TRUE(model->settings.gradient_checkpointing);
  EXPECT_EQ(watcher, nullptr);
}

}  // namespace
}  // namespace cytra::nn
