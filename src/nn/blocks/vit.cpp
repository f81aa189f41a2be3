// The Vision Transformer (arXiv:2010.11929) with the parameters of monai.networks.nets.ViT.
#include "nn/blocks/vit.h"

#include <numeric>

#include <ATen/ATen.h>
#include <torch/nn/init.h>

#include "base/error.h"
#include "nn/dropout.h"

namespace cytra::nn {
namespace {

/// (1,T,features): sines and cosines of the place in each dimension. Source:
/// monai.networks.blocks.pos_embed_utils.build_sincos_position_embedding.
at::Tensor sincos_positions(const Sizes& grid, int64_t features) {
  const auto dims = std::ssize(grid);
  if (features % (2 * dims) != 0) {
    throw ConfigError(
        "hidden_size={}: pos_embed_type=sincos needs a multiple of {}", features, 2 * dims);
  }
  const int64_t count = features / (2 * dims);
  const at::Tensor omega = at::pow(10000.0, -at::arange(count, at::kFloat) / count);
  std::vector<at::Tensor> axes, parts;
  for (const int64_t side : grid) axes.push_back(at::arange(side, at::kFloat));
  const std::vector<at::Tensor> places = at::meshgrid(axes, "ij");
  for (const std::size_t d : {1, 0, 2}) {  // MONAI's order
    if (d >= grid.size()) continue;
    const at::Tensor angle = at::outer(places[d].flatten(), omega);
    parts.insert(parts.end(), {angle.sin(), angle.cos()});
  }
  return at::cat(parts, 1).unsqueeze(0);
}

/// MONAI's block registers the norm of a cross-attention that it does not have. It is kept for the
/// names of the weights, and learns nothing.
std::shared_ptr<TransformerBlock> vit_block(const VitOptions& options) {
  auto block = std::make_shared<TransformerBlock>(kMonaiBlock,
                                                  options.hidden_size,
                                                  options.num_heads,
                                                  options.mlp_dim,
                                                  options.qkv_bias,
                                                  options.dropout_rate);
  const auto unused =
      block->register_module("norm_cross_attn", std::make_shared<LayerNorm>(options.hidden_size));
  for (at::Tensor& parameter : unused->parameters()) parameter.set_requires_grad(false);
  return block;
}

}  // namespace

void VitOptions::check() {
  img_size = per_dimension(img_size, spatial_dims, "img_size");
  if (hidden_size % num_heads != 0) {
    throw ConfigError(
        "hidden_size={}: expected a multiple of num_heads={}", hidden_size, num_heads);
  }
}

/// (N,C,[D,]H,W) -> (N,T,E)
struct VitEncoder::PatchEmbedding : torch::nn::Module {
  PatchEmbedding(const VitOptions& options, const Sizes& patch, const std::string& positions)
      : patch_(patch), dropout_(options.dropout_rate) {
    Sizes grid;
    for (std::size_t d = 0; d < patch.size(); ++d) grid.push_back(options.img_size[d] / patch[d]);
    const int64_t features = options.hidden_size;
    if (options.proj_type == "conv") {
      conv_ = register_module(
          "patch_embeddings",
          patch_convolution(options.in_channels, features, patch, Sizes(patch.size(), 0)));
    } else {
      const int64_t values =
          std::accumulate(patch.begin(), patch.end(), options.in_channels, std::multiplies<>());
      linear_ = put<torch::nn::Module>(*this, "patch_embeddings")
                    ->register_module("1", std::make_shared<Linear>(values, features));
      torch::nn::init::normal_(linear_->weight, 0, 0.02);
      torch::nn::init::zeros_(linear_->bias);
    }
    const int64_t tokens =
        std::accumulate(grid.begin(), grid.end(), int64_t{1}, std::multiplies<>());
    if (positions == "sincos") {
      positions_ = register_parameter(
          "position_embeddings", sincos_positions(grid, features), /*requires_grad=*/false);
    } else {
      positions_ = register_embedding(*this, "position_embeddings", {1, tokens, features});
      if (positions == "none") torch::nn::init::zeros_(positions_);
    }
  }
  at::Tensor forward(const at::Tensor& image) const {
    const at::Tensor tokens = (linear_ ? call(*linear_, patches(image))
                                       : call(*conv_, image).flatten(2).transpose(1, 2)) +
                              positions_;
    return nn::dropout(tokens, dropout_, is_training());
  }

 private:
  /// (N,C,h*p,w*q) -> (N,h*w,p*q*C)
  at::Tensor patches(const at::Tensor& image) const {
    at::Tensor x = image;
    const auto dims = std::ssize(patch_);
    for (int64_t d = 0; d < dims; ++d)
      x = x.unfold(2 + d, patch_[static_cast<std::size_t>(d)], patch_[static_cast<std::size_t>(d)]);
    return x.movedim(1, -1).flatten(1 + dims).flatten(1, dims);
  }
  Sizes patch_;
  double dropout_;
  std::shared_ptr<Conv> conv_;
  std::shared_ptr<Linear> linear_;
  at::Tensor positions_;
};

VitEncoder::VitEncoder(torch::nn::Module& owner,
                       const VitOptions& options,
                       const Sizes& patch_size,
                       int64_t num_layers,
                       const std::string& pos_embed_type)
    : patch_embedding_(
          put<PatchEmbedding>(owner, "patch_embedding", options, patch_size, pos_embed_type)),
      blocks_(register_list(
          owner, "blocks", num_layers, [&](int64_t /*i*/) { return vit_block(options); })),
      norm_(put<LayerNorm>(owner, "norm", options.hidden_size)) {}

std::vector<at::Tensor> VitEncoder::forward(const at::Tensor& image,
                                            const at::Tensor& first,
                                            bool recompute) const {
  at::Tensor x = call(*patch_embedding_, image);
  if (first.defined()) x = at::cat({first.expand({x.size(0), -1, -1}), x}, 1);
  std::vector<at::Tensor> states{{}};
  for (const auto& block : blocks_)
    states.push_back(x = recompute ? checkpoint(block, x) : call(*block, x));
  states.front() = call(*norm_, x);
  return states;
}

}  // namespace cytra::nn
