#pragma once
// The Vision Transformer of Segment Anything, with the names of its parameters.
#include "nn/blocks/transformer.h"

namespace cytra::nn {

/// torch.nn.LayerNorm over channels: (N,C,H,W) -> the same (segment_anything's LayerNorm2d).
struct ChannelNorm final : Layer {
  static constexpr double kEpsilon = 1e-6;
  explicit ChannelNorm(int64_t channels);
  at::Tensor forward(const at::Tensor& x) override;
  at::Tensor weight, bias;
};

struct SamEncoderOptions {
  int64_t img_size = 1024, patch_size = 16, embed_dim = 768, depth = 12, num_heads = 12,
          window_size = 14, out_chans = 256;
  double mlp_ratio = 4;
  std::vector<int64_t> global_attn_indexes{2, 5, 8, 11};
  // Of Cellpose-SAM, whose blocks all attend to the whole image, but keep the relative positions
  // that they have learned in Segment Anything, resampled to the present sides.
  int64_t pretrained_side = 0;  // tokens of the sides of that image; 0: blocks are as they are
  double rdrop = 0;             // chance in training that the last block is left out
  void visit(auto& v) {
    v("img_size", img_size, "pixels S of the square that it takes", 8, 1e5);
    v("patch_size", patch_size, "pixels of a patch's sides, each patch a token", 1, 1024);
    v("embed_dim", embed_dim, "features of the encoder's tokens", 1, 1e5);
    v("depth", depth, "transformer blocks", 1, 1000);
    v("num_heads", num_heads, "heads of their attention; they share embed_dim", 1, 1e4);
    v("mlp_ratio", mlp_ratio, "features inside of their MLPs, times embed_dim", 0.01, 100);
    v("out_chans", out_chans, "features C of an embedding, and of the decoder", 8, 1e5);
    v("window_size", window_size, "tokens of the sides of the windows for attention", 1, 1e4);
    v("global_attn_indexes",
      global_attn_indexes,
      "blocks, from 0, whose attention goes over the whole image",
      0,
      1000);
  }
  /// Throws: ConfigError for sizes that do not divide each other.
  void check() const;
};

/// segment_anything.modeling.ImageEncoderViT with relative positions.
class SamEncoder final : public torch::nn::Module {
 public:
  explicit SamEncoder(const SamEncoderOptions& options);
  /// (N,3,S,S) -> (N,C,s,s). `recompute`: gradient_checkpointing.
  at::Tensor forward(const at::Tensor& image, bool recompute);

 private:
  struct Attention;
  struct Block;
  double rdrop_;
  std::shared_ptr<Conv> patches_;
  at::Tensor positions_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<std::shared_ptr<Layer>> neck_;
};

}  // namespace cytra::nn
