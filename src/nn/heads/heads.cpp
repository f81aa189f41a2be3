// The heads of MultiHead: BaseHead, whose output is the backbone's features (MaskHead's mask is the
// task's `mask_key`), and ResBlocksHead, residual blocks and a convolution of side 1. Source, names
// of options and parameters: cyto_dl.nn.head with resolution "lr" (the image's).
#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/blocks/dynunet_block.h"
#include "nn/heads/output_head.h"

namespace cytra::nn {
namespace {

struct BaseHead final : OutputHead {
  struct Options : OutputHeadOptions {
    void check() const {
      if (!in_channels || !out_channels || *in_channels == *out_channels) return;
      throw ConfigError(
          "BaseHead: out_channels={}, but it hands on the {} features of the backbone: expected "
          "{}, or a ResBlocksHead",
          *out_channels,
          *in_channels,
          *in_channels);
    }
  };
  explicit BaseHead(const Options& /*options*/) {}
  at::Tensor forward(const at::Tensor& features) override { return features; }
};
CYTRA_REGISTER(OutputHead, BaseHead, "BaseHead", "MaskHead");

/// monai.networks.blocks.DenseBlock: each layer is given all results before it.
struct DenseLayers final : Layer {
  explicit DenseLayers(const std::vector<std::shared_ptr<Layer>>& layers) : layers_(layers) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      register_module("layers" + std::to_string(i), layers[i]);
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor all = x;
    for (const auto& layer : layers_) all = at::cat({all, call(*layer, all)}, 1);
    return all;
  }

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

struct ResBlocksHead final : OutputHead {
  struct Options : OutputHeadOptions {
    int64_t n_convs = 1;
    double dropout = 0;
    bool dense = false;
    config::Node final_act;
    void visit(auto& v) {
      OutputHeadOptions::visit(v);
      v("n_convs", n_convs, "residual blocks; 0: the last convolution alone", 0, 1000);
      v("dropout", dropout, "share of values dropped after each convolution in training", 0, 1);
      v("dense", dense, "each block is given all results before it");
      v("final_act", final_act, "activation of the logits, as sigmoid; null: none");
      v("resolution", config::Unused{{"lr"}}, "outputs have the image's size");
      v("upsample_method", config::Unused{}, "of resolution hr");
      v("upsample_ratio", config::Unused{}, "of resolution hr");
      v("first_layer", config::Unused{}, "none");
    }
  };
  explicit ResBlocksHead(const Options& options) {
    const auto dims = static_cast<std::size_t>(options.spatial_dims.value_or(2));
    const int64_t in = options.in_channels.value_or(1);
    UnetBlockOptions block{Sizes(dims, 3), Sizes(dims, 1)};
    block.norm.kind = "instance";
    block.act.kind = "leakyrelu";
    block.dropout = options.dropout;
    block.residual = true;
    std::vector<std::shared_ptr<Layer>> blocks;
    for (int64_t i = 0; i < options.n_convs; ++i)
      blocks.push_back(std::make_shared<UnetBlock>(options.dense ? (i + 1) * in : in, in, block));
    int64_t features = in;
    if (options.dense) {
      blocks = {std::make_shared<DenseLayers>(blocks)};
      features *= options.n_convs + 1;
    }
    blocks.push_back(
        std::make_shared<UnetOutBlock>(features, options.out_channels.value_or(in), block));
    blocks.push_back(std::make_shared<Activation>(activation_options(options.final_act)));
    for (std::size_t i = 0; i < blocks.size(); ++i)
      put(*this, "model.model." + std::to_string(i + 1), blocks[i]);  // 0: first_layer
    layers_ = std::move(blocks);
  }
  at::Tensor forward(const at::Tensor& features) override {
    at::Tensor x = features;
    for (const auto& layer : layers_) x = call(*layer, x);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};
CYTRA_REGISTER(OutputHead, ResBlocksHead, "ResBlocksHead");

}  // namespace
}  // namespace cytra::nn
