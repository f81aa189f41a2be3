// Source: segment_anything/modeling/transformer.py.
#include "nn/blocks/sam_transformer.h"

#include <cmath>

#include <ATen/ATen.h>

#include "ops/tokens/tokens.h"

namespace cytra::nn {
namespace {

/// A Linear's rows as those of its heads: (heads,inner / heads,features).
at::Tensor heads_of(const Linear& linear, int64_t heads) {
  return linear.weight.unflatten(0, {heads, -1});
}

/// (B,Q,inner) -> (heads,B Q,inner / heads)
at::Tensor by_heads(const at::Tensor& tokens, int64_t heads) {
  return tokens.flatten(0, 1).unflatten(1, {heads, -1}).transpose(0, 1);
}

/// (heads,B Q,features) -> (B,heads Q,features), of tokens (B,Q,...)
at::Tensor by_images(const at::Tensor& rows, const at::Tensor& tokens) {
  return rows.unflatten(1, tokens.sizes().slice(0, 2)).transpose(0, 1).flatten(1, 2);
}

}  // namespace

SamAttention::SamAttention(int64_t features, int64_t inner, int64_t count)
    : query(put<Linear>(*this, "q_proj", features, inner)),
      key(put<Linear>(*this, "k_proj", features, inner)),
      value(put<Linear>(*this, "v_proj", features, inner)),
      output(put<Linear>(*this, "out_proj", inner, features)),
      heads(count) {}

at::Tensor SamAttention::forward(const at::Tensor& queries,
                                 const at::Tensor& keys,
                                 const at::Tensor& values) {
  return call(*output,
              attend(split_heads(call(*query, queries), heads),
                     split_heads(call(*key, keys), heads),
                     split_heads(call(*value, values), heads)));
}

PlainImageTokens::PlainImageTokens(const at::Tensor& embeddings, const at::Tensor& places)
    : side_(embeddings.size(2)),
      places_(places.flatten(2).transpose(1, 2)),
      image_(embeddings.flatten(2).transpose(1, 2)),
      placed_(image_ + places_) {}

at::Tensor PlainImageTokens::seen_by(SamAttention& attention, const at::Tensor& queries) {
  return call(attention, queries, placed_, image_);
}

void PlainImageTokens::look_at(SamAttention& attention,
                               LayerNorm& norm,
                               const at::Tensor& keys,
                               const at::Tensor& values) {
  image_ = call(norm, image_ + call(attention, placed_, keys, values));
  placed_ = image_ + places_;
}

FusedImageTokens::FusedImageTokens(at::Tensor tokens, const at::Tensor& places)
    : side_(places.size(2)), tokens_(std::move(tokens)), places_(ops::to_token_tiles(places)[0]) {}

at::Tensor FusedImageTokens::seen_by(SamAttention& attention, const at::Tensor& queries) {
  const int64_t heads = attention.heads;
  // The bias of the keys adds the same number for all tokens of an image, and the softmax does not
  // change.
  const at::Tensor query = by_heads(call(*attention.query, queries), heads);
  const at::Tensor looking = at::bmm(query, heads_of(*attention.key, heads)) /
                             std::sqrt(static_cast<double>(query.size(2)));
  const at::Tensor means = ops::weigh_tokens(tokens_, places_, by_images(looking, queries), side_);
  const at::Tensor values = at::bmm(means.unflatten(1, {heads, -1}).transpose(0, 1).flatten(1, 2),
                                    heads_of(*attention.value, heads).transpose(1, 2));
  return call(*attention.output,
              values.transpose(0, 1).flatten(1).unflatten(0, queries.sizes().slice(0, 2)) +
                  attention.value->bias);
}

void FusedImageTokens::look_at(SamAttention& attention,
                               LayerNorm& norm,
                               const at::Tensor& keys,
                               const at::Tensor& values) {
  const int64_t heads = attention.heads;
  const at::Tensor key = by_heads(call(*attention.key, keys), heads);
  const at::Tensor scaled = key / std::sqrt(static_cast<double>(key.size(2)));
  const at::Tensor value = by_heads(call(*attention.value, values), heads);
  const at::Tensor outputs =
      attention.output->weight.unflatten(1, {heads, -1}).permute({1, 2, 0});  // (heads,e,C)
  ops::update_tokens(
      tokens_,
      places_,
      by_images(at::bmm(scaled, heads_of(*attention.query, heads)), keys),
      by_images(at::bmm(scaled, attention.query->bias.view({heads, -1, 1})), keys).squeeze(2),
      by_images(at::bmm(value, outputs), keys),
      keys.size(1),
      attention.output->bias,
      {norm.weight, norm.bias, norm.epsilon()});
}

TwoWayBlock::TwoWayBlock(int64_t features, int64_t heads, int64_t mlp_features, bool is_first)
    : is_first_(is_first),
      self_(put<SamAttention>(*this, "self_attn", features, features, heads)),
      norm1_(put<LayerNorm>(*this, "norm1", features)),
      to_image_(
          put<SamAttention>(*this, "cross_attn_token_to_image", features, features / 2, heads)),
      norm2_(put<LayerNorm>(*this, "norm2", features)),
      first_(put<Linear>(*this, "mlp.lin1", features, mlp_features)),
      second_(put<Linear>(*this, "mlp.lin2", mlp_features, features)),
      norm3_(put<LayerNorm>(*this, "norm3", features)),
      norm4_(put<LayerNorm>(*this, "norm4", features)),
      to_tokens_(
          put<SamAttention>(*this, "cross_attn_image_to_token", features, features / 2, heads)) {}

void TwoWayBlock::run(at::Tensor& tokens, const at::Tensor& token_places, ImageTokens& image) {
  if (is_first_) {
    tokens = call(*self_, tokens, tokens, tokens);
  } else {
    const at::Tensor placed = tokens + token_places;
    tokens = tokens + call(*self_, placed, placed, tokens);
  }
  tokens = call(*norm1_, tokens);
  tokens = call(*norm2_, tokens + image.seen_by(*to_image_, tokens + token_places));
  tokens = call(*norm3_, tokens + call(*second_, at::relu(call(*first_, tokens))));
  image.look_at(*to_tokens_, *norm4_, tokens + token_places, tokens);
}

}  // namespace cytra::nn
