#pragma once
// What Segment Anything's mask decoder does with the tokens of images, without gradients, on a CPU:
// each operation goes through an image's tokens once. Tokens are (B,tiles,C,32) here, of s rows of
// s; places likewise (tiles,C,32).
#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Whether these functions take an image like this one: float32 on a CPU, without gradients, trace
/// or autocast.
bool has_token_kernels(const at::Tensor& x);

/// (N,C,s,s) -> tokens, 0 behind the last one.
at::Tensor to_token_tiles(const at::Tensor& image);

/// The mean, for each query, of an image's tokens, weighted by softmax of query . (token + place).
/// Shape: queries (B,R,C) -> (B,R,C).
at::Tensor weigh_tokens(const at::Tensor& tokens,
                        const at::Tensor& places,
                        const at::Tensor& queries,
                        int64_t side);

/// A layer norm over channels.
struct ChannelScale {
  at::Tensor weight, bias;
  double eps;
};

/// tokens = norm(tokens + bias + values weighted by softmax of key . (token + place) + key_bias),
/// the softmax being of `group` keys each. Shape: keys, values (B,R,C), key_bias (B,R), bias (C).
void update_tokens(const at::Tensor& tokens,
                   const at::Tensor& places,
                   const at::Tensor& keys,
                   const at::Tensor& key_bias,
                   const at::Tensor& values,
                   int64_t group,
                   const at::Tensor& bias,
                   const ChannelScale& norm);

/// The layers that make pixels of tokens: transposed convolutions of 2 x 2, GELU behind each of
/// them.
struct TokenUpscaling {
  at::Tensor first, first_bias;  // (C,M,2,2)
  ChannelScale norm;
  at::Tensor second, second_bias;  // (M,L,2,2)
};
/// The products of a token's 4 x 4 pixels with factors (B,K,L) -> (B,K,4s,4s).
at::Tensor paint_masks(const at::Tensor& tokens,
                       int64_t side,
                       const TokenUpscaling& layers,
                       const at::Tensor& factors);

/// The layers that make tokens of masks: convolutions of 2 x 2, and one of a pixel.
struct MaskDownscaling {
  at::Tensor first, first_bias;  // (F,1,2,2)
  ChannelScale first_norm;
  at::Tensor second, second_bias;  // (S,F,2,2)
  ChannelScale second_norm;
  at::Tensor last, last_bias;  // (C,S,1,1)
};
/// Embeddings (B,C,s,s) + what is made of masks (B,1,4s,4s) -> tokens.
at::Tensor embed_masks(const at::Tensor& embeddings,
                       const at::Tensor& masks,
                       const MaskDownscaling& layers);

/// softmax(query key^T / sqrt(e) + down + across) value, of all tokens of squares: s rows of s, E
/// = heads e features. The added terms are never stored as a whole. On a CPU, without gradients:
/// has_token_kernels() of ops/tokens/tokens.h. Shape: qkv (N,s s,3 E), down and across (N,heads,s
/// s,s): what the row and the column of a key add for a query
/// -> (N,s s,E).
at::Tensor attend_square(const at::Tensor& qkv, const at::Tensor& down, const at::Tensor& across);

}  // namespace cytra::ops
