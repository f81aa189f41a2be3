// The parts of transformers (arXiv:2010.11929). Parameter names, first values and results are
// those of monai.networks.blocks.TransformerBlock and timm's Block.
#include "nn/blocks/transformer.h"

#include <cmath>

#include <ATen/ATen.h>
#include <torch/nn/init.h>

#include "nn/dropout.h"
#include "ops/linear/int8_weights.h"

namespace cytra::nn {

Linear::Linear(int64_t in, int64_t out, bool has_bias)
    : weight(register_parameter("weight", at::empty({out, in}))) {
  if (has_bias) bias = register_parameter("bias", at::empty({out}));
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  torch::nn::init::uniform_(weight, -bound, bound);
  if (has_bias) torch::nn::init::uniform_(bias, -bound, bound);
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  return ops::linear(x, weight, bias);
}

LayerNorm::LayerNorm(int64_t features, double epsilon)
    : weight(register_parameter("weight", at::ones({features}))),
      bias(register_parameter("bias", at::zeros({features}))),
      epsilon_(epsilon) {}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  return at::layer_norm(x, weight.sizes(), weight, bias, epsilon_);
}

std::shared_ptr<Conv> patch_convolution(
    int64_t in, int64_t out, const Sizes& patch, const Sizes& context, bool has_bias) {
  ConvOptions options{patch, patch, has_bias, false, context};
  for (std::size_t d = 0; d < patch.size(); ++d) options.kernel[d] += 2 * context[d];
  return std::make_shared<Conv>(in, out, options);
}

at::Tensor split_heads(const at::Tensor& tokens, int64_t heads) {
  return tokens.unflatten(-1, {heads, -1}).transpose(1, 2);
}

at::Tensor attend(const at::Tensor& query,
                  const at::Tensor& key,
                  const at::Tensor& value,
                  double dropout,
                  const at::Tensor& bias) {
  const auto mask = bias.defined() ? std::optional(bias) : std::nullopt;
  return at::scaled_dot_product_attention(query, key, value, mask, dropout)
      .transpose(1, 2)
      .flatten(2);
}

SelfAttention::SelfAttention(
    const BlockStyle& style, int64_t features, int64_t heads, bool qkv_bias, double dropout)
    : output(put<Linear>(*this, style.attention_output, features, features)),
      qkv(put<Linear>(*this, "qkv", features, 3 * features, qkv_bias)),
      heads_(heads),
      dropout_(dropout) {}

at::Tensor SelfAttention::forward(const at::Tensor& x) {
  const auto parts = call(*qkv, x).chunk(3, -1);
  const at::Tensor attended = attend(split_heads(parts[0], heads_),
                                     split_heads(parts[1], heads_),
                                     split_heads(parts[2], heads_),
                                     drops(dropout_, is_training()) ? dropout_ : 0);
  return nn::dropout(call(*output, attended), dropout_, is_training());
}

Mlp::Mlp(const BlockStyle& style, int64_t features, int64_t hidden, double dropout)
    : first(put<Linear>(*this, style.mlp_first, features, hidden)),
      second(put<Linear>(*this, style.mlp_second, hidden, features)),
      dropout_(dropout) {}

at::Tensor Mlp::forward(const at::Tensor& x) {
  const at::Tensor hidden = nn::dropout(at::gelu(call(*first, x)), dropout_, is_training());
  return nn::dropout(call(*second, hidden), dropout_, is_training());
}

TransformerBlock::TransformerBlock(const BlockStyle& style,
                                   int64_t features,
                                   int64_t heads,
                                   int64_t mlp_features,
                                   bool qkv_bias,
                                   double dropout)
    : mlp(put<Mlp>(*this, "mlp", style, features, mlp_features, dropout)),
      norm1(put<LayerNorm>(*this, "norm1", features, style.epsilon)),
      norm2(put<LayerNorm>(*this, "norm2", features, style.epsilon)),
      attn(put<SelfAttention>(*this, "attn", style, features, heads, qkv_bias, dropout)) {}

at::Tensor TransformerBlock::forward(const at::Tensor& x) {
  const at::Tensor y = x + call(*attn, call(*norm1, x));
  return y + call(*mlp, call(*norm2, y));
}

at::Tensor register_embedding(torch::nn::Module& owner, const char* name, const Sizes& shape) {
  at::Tensor values = owner.register_parameter(name, at::empty(shape));
  torch::nn::init::normal_(values, 0, 0.02);
  return values;
}

}  // namespace cytra::nn
