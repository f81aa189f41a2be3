#include "nn/model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"

namespace cytra::nn {
namespace {

std::shared_ptr<Model> placed(const std::string& options) {
  const auto model = make<Model>(
      "{_target_: DynUNet, filters: [4, 8], kernel_size: [3, 3], "
      "strides: [1, 2], upsample_kernel_size: [2], " +
      options + "}");
  place(*model, at::kCPU);
  return model;
}

bool weights_have_channels_last(const Model& model) {
  for (const at::Tensor& weight : model.parameters()) {
    if (weight.dim() < 4 || weight.size(1) == 1) continue;
    const auto format =
        weight.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
    if (!weight.is_contiguous(format)) return false;
  }
  return true;
}

TEST(Model, PutsChannelsLastOnACpuUnlessToldOtherwise) {
  for (const char* dims : {"spatial_dims: 2", "spatial_dims: 3"}) {
    for (const char* layout : {"", ", channels_last: null", ", channels_last: true"}) {
      const auto model = placed(std::string(dims) + layout);
      EXPECT_TRUE(model->channels_last) << dims << layout;
      EXPECT_TRUE(weights_have_channels_last(*model)) << dims << layout;
    }
    const auto model = placed(std::string(dims) + ", channels_last: false");
    EXPECT_FALSE(model->channels_last) << dims;
    EXPECT_FALSE(weights_have_channels_last(*model)) << dims;
  }
}

TEST(Model, WeightsOfOneLayoutAreThoseOfTheOther) {
  const auto last = placed("spatial_dims: 2"),
             first = placed("spatial_dims: 2, channels_last: false");
  const at::Tensor image = at::rand({2, 1, 8, 8});
  for (const auto& [from, to] : {std::pair(last, first), std::pair(first, last)}) {
    for (at::Tensor& parameter : from->parameters()) parameter.data().normal_();
    std::map<std::string, at::Tensor> state = state_of(*from);
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : state_of(*to)) at::Tensor(tensor).copy_(state.at(name));
    EXPECT_TRUE((*to)(image).allclose((*from)(image), 1e-4, 1e-5));
  }
}

TEST(Model, MayBePlacedAgain) {
  const auto model = placed("spatial_dims: 2");
  model->settings.channels_last = false;
  place(*model, at::kCPU);
  EXPECT_FALSE(model->channels_last);
  for (const at::Tensor& weight : model->parameters()) EXPECT_TRUE(weight.is_contiguous());
}

TEST(Model, KeepsItsOptions) {
  const auto model = placed("gradient_checkpointing: true, channels_last: false");
  EXPECT_TRUE(model->settings.gradient_checkpointing);
  EXPECT_EQ(model->settings.channels_last, std::optional(false));
  EXPECT_EQ(model->settings.compile_model, std::nullopt);
  EXPECT_EQ(placed("compile_mode: max-autotune")->settings.compile_mode, "max-autotune");
  EXPECT_THROW(placed("compile_mode: fastest"), ConfigError);
}

TEST(Model, EveryOneTakesTheKeysOfAll) {
  for (const auto& [name, options] : config::components_of(Model::kKind).types) {
    std::string keys;
    for (const config::OptionInfo& option : options.describe()) keys += option.name + " ";
    for (const char* key :
         {"channels_last", "gradient_checkpointing", "compile_model", "compile_mode"})
      EXPECT_NE(keys.find(key), std::string::npos) << name << " has no " << key << ": " << keys;
  }
}

TEST(Cast, IndicesStayWhatTheyAre) {
  const auto model = make<nn::Model>(
      "{_target_: SwinUNETR, in_channels: 1, out_channels: 1, feature_size: 12, depths: [1, 1, 1, "
      "1], "
      "num_heads: [1, 1, 1, 1], spatial_dims: 2}");
  nn::cast(*model, at::kDouble);
  int64_t indices = 0;
  for (const at::Tensor& buffer : model->buffers())
    indices += buffer.scalar_type() == at::kLong ? 1 : 0;
  EXPECT_GT(indices, 0);
  for (const at::Tensor& parameter : model->parameters())
    EXPECT_EQ(parameter.scalar_type(), at::kDouble);
}

}  // namespace
}  // namespace cytra::nn
