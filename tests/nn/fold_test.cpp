#include "nn/fold.h"

#include <map>

#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "config/registry.h"
#include "nn/blocks/layers.h"
#include "nn/model.h"

namespace cytra {
namespace {

/// A model in evaluation mode whose batch norms have learnt something.
std::shared_ptr<nn::Model> trained(const std::string& text) {
  at::manual_seed(0);
  auto model = make<nn::Model>("{_target_: " + text + "}");
  const at::NoGradGuard no_grad;
  for (const auto& module : model->modules()) {
    const auto norm = std::dynamic_pointer_cast<nn::Norm>(module);
    if (!norm) continue;
    for (auto& buffer : norm->named_buffers(false)) {
      if (buffer.key() == "running_mean") buffer.value().normal_();
      if (buffer.key() == "running_var") buffer.value().uniform_(0.2, 3);
    }
    if (!norm->weight.defined()) continue;
    norm->weight.uniform_(0.5, 2);
    norm->bias.normal_();
  }
  model->eval();
  return model;
}

double share_of(const at::Tensor& off, const at::Tensor& values) {
  return (off - values).to(at::kDouble).square().mean().sqrt().item<double>() /
         values.to(at::kDouble).square().mean().sqrt().item<double>();
}

TEST(Fold, BatchNormsBehindConvolutionsAreGone) {
  struct Expected {
    int64_t folded, stay;  // those stay that normalise a sum
  };
  const std::map<std::string, Expected> folded_of{
      {"UNet, channels: [4, 8, 16], strides: [2, 2], norm: batch, num_res_units: 0", {4, 0}},
      {"UNet, channels: [4, 8, 16], strides: [2, 2], norm: batch, num_res_units: 2, dropout: 0.2",
       {9, 0}},
      {"AttentionUnet, channels: [4, 8, 16], strides: [2, 2], dropout: 0.1", {14, 0}},
      {"BasicUNet, features: [4, 4, 8, 8, 16, 4], norm: batch, dropout: 0.1", {18, 0}},
      {"DynUNet, filters: [4, 8, 16], norm_name: batch, res_block: true", {13, 0}},
      {"VNet, spatial_dims: 2", {24, 0}},
      {"SegResNet, init_filters: 8, norm: batch", {12, 13}},
  };
  for (const auto& [text, expected] : folded_of) {
    SCOPED_TRACE(text);
    const auto model = trained(text);
    const at::NoGradGuard no_grad;
    std::vector<int64_t> shape{2, 1};
    for (const int64_t side : model->divisor()) shape.push_back(2 * std::max<int64_t>(side, 16));
    const at::Tensor image = at::randn(shape), before = (*model)(image);
    EXPECT_EQ(nn::fold(*model), expected.folded);
    int64_t stay = 0;
    for (const auto& module : model->modules()) {
      const auto norm = std::dynamic_pointer_cast<nn::Norm>(module);
      if (norm && norm->is_of_batch() && !norm->is_folded) ++stay;
    }
    EXPECT_EQ(stay, expected.stay);
    const double share = share_of((*model)(image), before);
    EXPECT_LT(share, 1e-6);
    EXPECT_EQ(nn::fold(*model), 0);  // once is enough
  }
}

TEST(Fold, OtherNormsStay) {
  for (const char* norm : {"instance", "[group, {num_groups: 2}]"}) {
    const auto model = trained("UNet, channels: [4, 8], strides: [2], norm: " + std::string(norm));
    const at::NoGradGuard no_grad;
    const at::Tensor image = at::randn({1, 1, 16, 16}), before = (*model)(image);
    EXPECT_EQ(nn::fold(*model), 0);
    EXPECT_TRUE((*model)(image).equal(before));
  }
}

/// A convolution whose output is read by its norm, and by a sum.
struct Shared final : nn::Model {
  Shared() : Model({}) {
    const nn::NormOptions batch{"batch"};
    conv_ =
        register_module("conv", std::make_shared<nn::Conv>(1, 2, nn::ConvOptions{{3, 3}, {1, 1}}));
    norm_ = register_module("norm", std::make_shared<nn::Norm>(batch, 2));
  }
  at::Tensor forward(const at::Tensor& image) override {
    const at::Tensor x = nn::call(*conv_, image);
    return nn::call(*norm_, x) + x;
  }
  std::vector<int64_t> divisor() const override { return {1, 1}; }
  int64_t in_channels() const override { return 1; }
  int64_t out_channels() const override { return 2; }
  int64_t spatial_dims() const override { return 2; }
  std::shared_ptr<nn::Conv> conv_;
  std::shared_ptr<nn::Norm> norm_;
};

TEST(Fold, AConvolutionWithOtherReadersKeepsItsWeights) {
  at::manual_seed(0);
  const auto model = std::make_shared<Shared>();
  const at::NoGradGuard no_grad;
  model->norm_->weight.fill_(3);
  model->eval();
  const at::Tensor image = at::randn({1, 1, 16, 16}), before = (*model)(image);
  EXPECT_EQ(nn::fold(*model), 0);
  EXPECT_TRUE((*model)(image).equal(before));
}

}  // namespace
}  // namespace cytra
