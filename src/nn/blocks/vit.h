#pragma once
// The Vision Transformer of MONAI (monai.networks.nets.ViT) as an encoder, for ViT and UNETR.
#include "nn/blocks/transformer.h"

namespace cytra::nn {

struct VitOptions {
  int64_t spatial_dims = 3, in_channels = 1, hidden_size = 768, mlp_dim = 3072, num_heads = 12;
  Sizes img_size{96};
  std::string proj_type = "conv";
  double dropout_rate = 0;
  bool qkv_bias = false;
  void visit(auto& v) {
    v("spatial_dims", spatial_dims, "2 or 3", 2, 3);
    v("in_channels", in_channels, "image channels C", 1, 1e5);
    v("img_size", img_size, "sides of the image, the only ones it takes; one number or one each");
    v("hidden_size", hidden_size, "features of a token", 1, 1e5);
    v("mlp_dim", mlp_dim, "features inside of an MLP", 1, 1e6);
    v("num_heads", num_heads, "heads of the attention; they share hidden_size", 1, 1e4);
    v("proj_type", proj_type, "how a patch becomes a token", {"conv", "perceptron"});
    v("dropout_rate", dropout_rate, "share of values dropped in training", 0, 1);
    v("qkv_bias", qkv_bias, "biases of queries, keys and values");
  }
  /// Gives img_size one number per dimension.
  void check();
};

/// Patch embedding, blocks and norm, registered in their owner: `blocks.3` or `vit.blocks.3`.
class VitEncoder {
 public:
  /// `pos_embed_type`: none (zeros that learn), learnable or sincos.
  VitEncoder(torch::nn::Module& owner,
             const VitOptions& options,
             const Sizes& patch_size,
             int64_t num_layers,
             const std::string& pos_embed_type);
  /// image -> tokens (N,T,E), `first` (1,1,E) in front of them where it is defined: after the norm,
  /// then after each block. `recompute`: gradient_checkpointing.
  std::vector<at::Tensor> forward(const at::Tensor& image,
                                  const at::Tensor& first,
                                  bool recompute) const;

 private:
  struct PatchEmbedding;
  std::shared_ptr<PatchEmbedding> patch_embedding_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace cytra::nn
