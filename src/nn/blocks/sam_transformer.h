#pragma once
// The two-way transformer of Segment Anything's mask decoder: tokens of prompts, and those of
// images.
#include "nn/blocks/transformer.h"

namespace cytra::nn {

/// Attention to other tokens than the queries, with fewer features inside.
struct SamAttention final : torch::nn::Module {
  SamAttention(int64_t features, int64_t inner, int64_t heads);
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);
  std::shared_ptr<Linear> query, key, value, output;
  const int64_t heads;
};

/// The images of a batch as tokens, and the operations on all of them: by tensor operations, or,
/// on a CPU without gradients, by kernels that read them once for each call (ops/tokens/tokens.h).
struct ImageTokens {
  virtual ~ImageTokens() = default;
  /// attention(queries, image + places, image)
  virtual at::Tensor seen_by(SamAttention& attention, const at::Tensor& queries) = 0;
  /// image = norm(image + attention(image + places, keys, values))
  virtual void look_at(SamAttention& attention,
                       LayerNorm& norm,
                       const at::Tensor& keys,
                       const at::Tensor& values) = 0;
};

/// embeddings (B,C,s,s), places (1,C,s,s).
class PlainImageTokens final : public ImageTokens {
 public:
  PlainImageTokens(const at::Tensor& embeddings, const at::Tensor& places);
  at::Tensor seen_by(SamAttention& attention, const at::Tensor& queries) override;
  void look_at(SamAttention& attention,
               LayerNorm& norm,
               const at::Tensor& keys,
               const at::Tensor& values) override;
  /// (B,C,s,s)
  at::Tensor image() const { return image_.transpose(1, 2).unflatten(2, {side_, side_}); }

 private:
  int64_t side_;
  at::Tensor places_, image_, placed_;  // (B or 1,T,C); placed_: image_ + places_
};

/// The projections of keys and values are applied to the few tokens of a prompt instead: softmax(q
/// (W x)) = softmax((W^T q) x).
class FusedImageTokens final : public ImageTokens {
 public:
  /// tokens: of ops/tokens/tokens.h, written into.
  FusedImageTokens(at::Tensor tokens, const at::Tensor& places);
  at::Tensor seen_by(SamAttention& attention, const at::Tensor& queries) override;
  void look_at(SamAttention& attention,
               LayerNorm& norm,
               const at::Tensor& keys,
               const at::Tensor& values) override;
  const at::Tensor& tokens() const { return tokens_; }

 private:
  int64_t side_;
  at::Tensor tokens_, places_;
};

/// Attention of the tokens to each other and to the image, then of the image to the tokens.
struct TwoWayBlock final : torch::nn::Module {
  TwoWayBlock(int64_t features, int64_t heads, int64_t mlp_features, bool is_first);
  void run(at::Tensor& tokens, const at::Tensor& token_places, ImageTokens& image);

 private:
  bool is_first_;
  std::shared_ptr<SamAttention> self_;
  std::shared_ptr<LayerNorm> norm1_;
  std::shared_ptr<SamAttention> to_image_;
  std::shared_ptr<LayerNorm> norm2_;
  std::shared_ptr<Linear> first_, second_;
  std::shared_ptr<LayerNorm> norm3_, norm4_;
  std::shared_ptr<SamAttention> to_tokens_;
};

}  // namespace cytra::nn
