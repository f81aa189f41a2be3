#pragma once
// The prompts and masks of Segment Anything, with the names of its parameters.
#include "nn/blocks/sam_encoder.h"
#include "nn/blocks/sam_transformer.h"
#include "nn/promptable.h"

namespace cytra::nn {

struct SamDecoderOptions {
  int64_t mask_in_chans = 16, num_multimask_outputs = 3, decoder_depth = 2, decoder_num_heads = 8,
          decoder_mlp_dim = 2048, iou_head_depth = 3, iou_head_hidden_dim = 256;
  double pe_scale = 1;
  void visit(auto& v) {
    v("mask_in_chans", mask_in_chans, "features for a mask as a prompt", 4, 1e4);
    v("num_multimask_outputs",
      num_multimask_outputs,
      "masks for ambiguous prompts, besides the one mask for clear ones",
      0,
      100);
    v("pe_scale",
      pe_scale,
      "scale of the random frequencies that encode places, at the beginning: larger ones tell "
      "nearer places apart, for small objects",
      1e-3,
      1e3);
    v("decoder_depth", decoder_depth, "two-way blocks", 1, 100);
    v("decoder_num_heads",
      decoder_num_heads,
      "heads of their attention; they share half of out_chans",
      1,
      1e4);
    v("decoder_mlp_dim", decoder_mlp_dim, "features inside of their MLPs", 1, 1e6);
    v("iou_head_depth",
      iou_head_depth,
      "layers of the part that predicts a mask's quality",
      1,
      100);
    v("iou_head_hidden_dim", iou_head_hidden_dim, "features inside that part", 1, 1e5);
  }
  /// Throws: ConfigError for sizes that do not divide each other.
  void check(int64_t features) const;
};

/// segment_anything.modeling.PromptEncoder.
class SamPromptEncoder final : public torch::nn::Module {
 public:
  /// `side`: tokens of an embedding's sides; `img_size`: pixels.
  SamPromptEncoder(int64_t features,
                   int64_t side,
                   int64_t img_size,
                   const SamDecoderOptions& options);
  /// Points and boxes: (B,P,C); without either (B,0,C).
  at::Tensor sparse(const Prompts& prompts);
  /// The mask prompt, or the embedding that stands for none: (B or 1,C,s,s).
  at::Tensor dense(const Prompts& prompts);
  /// embeddings (B,C,s,s) + dense(prompts) as tokens of ops/tokens/tokens.h.
  at::Tensor embed(const at::Tensor& embeddings, const Prompts& prompts);
  /// Where each token of an embedding lies: (1,C,s,s).
  at::Tensor grid() const;

 private:
  at::Tensor encoded(const at::Tensor& coordinates) const;
  int64_t side_, img_size_;
  at::Tensor frequencies_;           // (2,C/2)
  std::vector<at::Tensor> corners_;  // outside, inside, upper left, lower right; each (1,C)
  at::Tensor no_point_, no_mask_;    // (1,C)
  std::vector<std::shared_ptr<Layer>> downscaling_;
};

/// segment_anything.modeling.MaskDecoder with its TwoWayTransformer.
class SamMaskDecoder final : public torch::nn::Module {
 public:
  SamMaskDecoder(int64_t features, const SamDecoderOptions& options);
  /// embeddings: (B,C,s,s); grid, sparse, dense: SamPromptEncoder's; all: as
  /// PromptableModel::decode().
  PromptedMasks forward(const at::Tensor& embeddings,
                        const at::Tensor& grid,
                        const at::Tensor& sparse,
                        const at::Tensor& dense,
                        bool all);
  /// forward() by kernels of a CPU, without gradients. image_tokens: SamPromptEncoder::embed()'s,
  /// which is overwritten.
  PromptedMasks forward_fused(const at::Tensor& image_tokens,
                              const at::Tensor& grid,
                              const at::Tensor& sparse,
                              bool all);

 private:
  struct LayersMlp;
  at::Tensor attend(ImageTokens& image, int64_t objects, const at::Tensor& sparse);
  at::Tensor factors(const at::Tensor& tokens, int64_t masks);
  std::vector<std::shared_ptr<TwoWayBlock>> blocks_;
  std::shared_ptr<SamAttention> last_;
  std::shared_ptr<LayerNorm> last_norm_;
  at::Tensor quality_token_, mask_tokens_;  // (1,C), (K,C)
  std::vector<std::shared_ptr<Layer>> upscaling_;
  std::vector<std::shared_ptr<LayersMlp>> mask_mlps_;
  std::shared_ptr<LayersMlp> quality_mlp_;
};

}  // namespace cytra::nn
