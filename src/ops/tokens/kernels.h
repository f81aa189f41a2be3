#pragma once
// Inner loops of ops/tokens/tokens.h. A tile is kTokenTile tokens: of each channel their values
// beside each other, (C,kTokenTile). All tiles and `scratch` begin at a multiple of 64 bytes.
#include <cstdint>

namespace cytra::ops::cpu {

constexpr int64_t kTokenTile = 32;  // a multiple of two vectors

struct NormWeights {
  const float *weight, *bias;
  float eps;
};

/// The tokens of an image, and their places.
struct TokenTiles {
  const float *tokens, *places;  // (tiles,C,kTokenTile)
  int64_t tiles, channels;
  int64_t count;  // tokens that there are; the last tile may have more
};

/// softmax(keys^T (token + place) + key_bias, of `group` rows each) values.
struct TokenUpdate {
  const float *keys, *key_bias, *values;  // (C,R), (R), (R,C)
  int64_t rows, group;
  const float* bias;  // (C)
  NormWeights norm;
};

/// Two transposed convolutions of 2 x 2 with a norm and GELU, and a product with `factors`. A pixel
/// of the four that one becomes is the first dimension of a weight's columns.
struct TokenPainting {
  int64_t channels, middle, last;               // features, of which there are half each time
  const float *first, *first_bias;              // (C,4 M), (4 M)
  NormWeights norm;                             // of M
  const float *second, *second_bias, *factors;  // (M,4 L), (4 L), (masks,L)
  int64_t masks;
};

/// Two convolutions of 2 x 2, both with a norm and GELU, and one of a pixel.
struct TokenPatches {
  int64_t channels, first_channels, second_channels;
  const float *first, *first_bias;  // (4,F), (F)
  NormWeights first_norm;
  const float *second, *second_bias;  // (4 F,S), (S)
  NormWeights second_norm;
  const float *last, *last_bias;  // (S,C), (C)
};

/// The tokens of a square in one head, `side` rows of them, as keys and as values.
struct SquareKeys {
  const float* keys;  // (features,key_step)
  int64_t key_step;
  const float* values;  // (side side,value_step)
  int64_t value_step;
  int64_t side, features;
};

struct TokenKernels {
  /// Computes, for `rows` queries of an image, (C,step), the mean of the tokens weighted by
  /// softmax of query^T (token + place):
  /// -> out (rows,C). scratch: (C + tiles rows) kTokenTile + rows.
  void (*weigh)(const TokenTiles& of,
                const float* queries,
                int64_t step,
                int64_t rows,
                float* out,
                float* scratch);
  /// tile = norm(tile + bias + what the update is of it). scratch: (C + R) kTokenTile.
  void (*update)(
      const TokenUpdate& by, int64_t channels, float* tile, const float* places, float* scratch);
  /// out: (masks,16,kTokenTile), the pixels of a token in the order of the two convolutions.
  /// scratch: (4 M + 4 L) kTokenTile.
  void (*paint)(const TokenPainting& by, const float* tile, float* out, float* scratch);
  /// tile += what is made of patches (16,kTokenTile), likewise. scratch: (4 F + S + C) kTokenTile.
  void (*add_patches)(const TokenPatches& by, const float* patches, float* tile, float* scratch);
  /// softmax(query . key + what a key's row and column add) values, for a tile of queries: queries
  /// and out (features,kTokenTile), down and across (side,kTokenTile). scratch: side side
  /// kTokenTile.
  void (*attend_square)(const SquareKeys& of,
                        const float* queries,
                        const float* down,
                        const float* across,
                        float* out,
                        float* scratch);
};

/// The kernels for this processor's instruction set, which ATen chose (ATEN_CPU_CAPABILITY sets
/// it).
const TokenKernels& token_kernels();

}  // namespace cytra::ops::cpu
