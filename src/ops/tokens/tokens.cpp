#include "ops/tokens/tokens.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "ops/tokens/kernels.h"

namespace cytra::ops {
namespace {

using cpu::kTokenTile;

int64_t tiles_of(int64_t tokens) {
  return (tokens + kTokenTile - 1) / kTokenTile;
}

/// Memory for a thread; its kernels read whole vectors.
at::Tensor token_scratch(int64_t rows) {
  return at::empty({rows * kTokenTile}, at::kFloat);
}

const float* values_of(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}

/// The values of a ChannelScale for kernels: dense, and alive as long as this object.
struct NormValues {
  explicit NormValues(const ChannelScale& norm)
      : weight(norm.weight.contiguous()),
        bias(norm.bias.contiguous()),
        weights{values_of(weight), values_of(bias), static_cast<float>(norm.eps)} {}
  at::Tensor weight, bias;
  cpu::NormWeights weights;
};

/// f(image, first tile, behind the last one) in several threads.
void for_tiles(int64_t images, int64_t tiles, const auto& f) {
  at::parallel_for(0, images * tiles, 1, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t image = begin / tiles, stop = std::min(end, (image + 1) * tiles);
      f(image, begin - image * tiles, stop - image * tiles);
      begin = stop;
    }
  });
}

/// The pixels of a token in the order of two halvings of its sides: row and column of each.
struct Pixel {
  int64_t row, column;
};
constexpr Pixel pixel_of(int64_t number) {
  return {number / 8 * 2 + number / 2 % 2, number / 4 % 2 * 2 + number % 2};
}

/// f(token in the tile, its place in an image of which it is 4 x 4 pixels) of the tokens that there
/// are.
void for_tokens(int64_t tile, int64_t side, const auto& f) {
  const int64_t first = tile * kTokenTile, count = std::min(kTokenTile, side * side - first);
  int64_t row = first / side, column = first % side;
  for (int64_t i = 0; i < count; ++i) {
    f(i, row * 16 * side + column * 4);
    if (++column == side) {
      column = 0;
      ++row;
    }
  }
}

/// Columns from `first` on of a matrix, as a tile: 0 where there are no more.
void copy_columns(
    const float* from, int64_t step, int64_t rows, int64_t count, float factor, float* tile) {
  for (int64_t r = 0; r < rows; ++r, from += step, tile += kTokenTile) {
    for (int64_t i = 0; i < count; ++i) tile[i] = from[i] * factor;
    std::fill_n(tile + count, kTokenTile - count, 0.0F);
  }
}

}  // namespace

bool has_token_kernels(const at::Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == at::kFloat && !at::GradMode::is_enabled() &&
         !at::autocast::is_autocast_enabled(at::kCPU) && !torch::jit::tracer::isTracing();
}

at::Tensor to_token_tiles(const at::Tensor& image) {
  const at::Tensor rows = image.flatten(2);
  const int64_t tiles = tiles_of(rows.size(2));
  return at::constant_pad_nd(rows, {0, tiles * kTokenTile - rows.size(2)})
      .unflatten(2, {tiles, kTokenTile})
      .transpose(1, 2)
      .clone(at::MemoryFormat::Contiguous);
}

at::Tensor weigh_tokens(const at::Tensor& tokens,
                        const at::Tensor& places,
                        const at::Tensor& queries,
                        int64_t side) {
  const int64_t images = tokens.size(0), tiles = tokens.size(1), channels = tokens.size(2);
  const int64_t rows = queries.size(1);
  const at::Tensor columns = queries.transpose(1, 2).contiguous();
  const at::Tensor means = at::empty({images, rows, channels}, queries.options());
  const float* const query = values_of(columns);
  float* const mean = means.data_ptr<float>();
  const cpu::TokenKernels& kernels = cpu::token_kernels();
  at::parallel_for(0, images * rows, 1, [&](int64_t begin, int64_t end) {
    const at::Tensor scratch = token_scratch(channels + (tiles + 1) * std::min(rows, end - begin));
    while (begin < end) {
      const int64_t image = begin / rows, row = begin % rows;
      const int64_t count = std::min(rows - row, end - begin);
      kernels.weigh({values_of(tokens) + image * tiles * channels * kTokenTile,
                     values_of(places),
                     tiles,
                     channels,
                     side * side},
                    query + image * channels * rows + row,
                    rows,
                    count,
                    mean + begin * channels,
                    scratch.data_ptr<float>());
      begin += count;
    }
  });
  return means;
}

void update_tokens(const at::Tensor& tokens,
                   const at::Tensor& places,
                   const at::Tensor& keys,
                   const at::Tensor& key_bias,
                   const at::Tensor& values,
                   int64_t group,
                   const at::Tensor& bias,
                   const ChannelScale& norm) {
  const int64_t tiles = tokens.size(1), channels = tokens.size(2), rows = keys.size(1);
  const int64_t tile_size = channels * kTokenTile;
  const at::Tensor columns = keys.transpose(1, 2).contiguous(), own_bias = key_bias.contiguous(),
                   own_values = values.contiguous(), shift = bias.contiguous();
  const NormValues scale(norm);
  const cpu::TokenKernels& kernels = cpu::token_kernels();
  float* const all = tokens.data_ptr<float>();
  for_tiles(tokens.size(0), tiles, [&](int64_t image, int64_t begin, int64_t end) {
    const at::Tensor scratch = token_scratch(channels + rows);
    const cpu::TokenUpdate by{values_of(columns) + image * channels * rows,
                              values_of(own_bias) + image * rows,
                              values_of(own_values) + image * rows * channels,
                              rows,
                              group,
                              values_of(shift),
                              scale.weights};
    for (int64_t tile = begin; tile < end; ++tile)
      kernels.update(by,
                     channels,
                     all + (image * tiles + tile) * tile_size,
                     values_of(places) + tile * tile_size,
                     scratch.data_ptr<float>());
  });
}

at::Tensor paint_masks(const at::Tensor& tokens,
                       int64_t side,
                       const TokenUpscaling& layers,
                       const at::Tensor& factors) {
  const int64_t images = tokens.size(0), tiles = tokens.size(1), channels = tokens.size(2);
  const int64_t middle = layers.first.size(1), last = layers.second.size(1);
  const int64_t count = factors.size(1), pixels = 16 * side * side;
  const auto columns = [](const at::Tensor& weight) {  // (in,out,2,2) -> (in,4 out)
    return weight.permute({0, 2, 3, 1}).contiguous();
  };
  const at::Tensor first = columns(layers.first), second = columns(layers.second),
                   first_bias = layers.first_bias.repeat({4}),
                   second_bias = layers.second_bias.repeat({4}), own_factors = factors.contiguous();
  const NormValues norm(layers.norm);
  at::Tensor masks = at::empty({images, count, 4 * side, 4 * side}, tokens.options());
  float* const out = masks.data_ptr<float>();
  const cpu::TokenKernels& kernels = cpu::token_kernels();
  for_tiles(images, tiles, [&](int64_t image, int64_t begin, int64_t end) {
    const at::Tensor scratch = token_scratch(4 * middle + 4 * last + 16 * count);
    float* const work = scratch.data_ptr<float>();
    float* const made = work + 4 * (middle + last) * kTokenTile;
    const cpu::TokenPainting by{channels,
                                middle,
                                last,
                                values_of(first),
                                values_of(first_bias),
                                norm.weights,
                                values_of(second),
                                values_of(second_bias),
                                values_of(own_factors) + image * count * last,
                                count};
    for (int64_t tile = begin; tile < end; ++tile) {
      kernels.paint(
          by, values_of(tokens) + (image * tiles + tile) * channels * kTokenTile, made, work);
      for (int64_t mask = 0; mask < count; ++mask) {
        for (int64_t p = 0; p < 16; ++p) {
          const Pixel pixel = pixel_of(p);
          float* const to =
              out + (image * count + mask) * pixels + pixel.row * 4 * side + pixel.column;
          const float* const from = made + (mask * 16 + p) * kTokenTile;
          for_tokens(tile, side, [&](int64_t i, int64_t place) { to[place] = from[i]; });
        }
      }
    }
  });
  return masks;
}

at::Tensor embed_masks(const at::Tensor& embeddings,
                       const at::Tensor& masks,
                       const MaskDownscaling& layers) {
  const int64_t images = embeddings.size(0), channels = embeddings.size(1);
  const int64_t side = embeddings.size(2), count = side * side, tiles = tiles_of(count);
  const int64_t first_channels = layers.first.size(0), second_channels = layers.second.size(0);
  const at::Tensor image = embeddings.contiguous(), guess = masks.contiguous(),
                   first = layers.first.flatten(1).t().contiguous(),
                   second = layers.second.permute({2, 3, 1, 0}).contiguous(),
                   last = layers.last.flatten(1).t().contiguous(),
                   first_bias = layers.first_bias.contiguous(),
                   second_bias = layers.second_bias.contiguous(),
                   last_bias = layers.last_bias.contiguous();
  const NormValues first_norm(layers.first_norm), second_norm(layers.second_norm);
  const cpu::TokenPatches by{channels,
                             first_channels,
                             second_channels,
                             values_of(first),
                             values_of(first_bias),
                             first_norm.weights,
                             values_of(second),
                             values_of(second_bias),
                             second_norm.weights,
                             values_of(last),
                             values_of(last_bias)};
  at::Tensor tokens = at::empty({images, tiles, channels, kTokenTile}, image.options());
  float* const out = tokens.data_ptr<float>();
  const cpu::TokenKernels& kernels = cpu::token_kernels();
  for_tiles(images, tiles, [&](int64_t number, int64_t begin, int64_t end) {
    const at::Tensor scratch = token_scratch(4 * first_channels + second_channels + channels + 16);
    float* const patches = scratch.data_ptr<float>();
    std::fill_n(patches, 16 * kTokenTile, 0.0F);
    for (int64_t tile = begin; tile < end; ++tile) {
      float* const to = out + (number * tiles + tile) * channels * kTokenTile;
      const int64_t from = tile * kTokenTile, some = std::min(kTokenTile, count - from);
      for (int64_t c = 0; c < channels; ++c) {
        std::copy_n(
            values_of(image) + (number * channels + c) * count + from, some, to + c * kTokenTile);
        std::fill_n(to + c * kTokenTile + some, kTokenTile - some, 0.0F);
      }
      for (int64_t p = 0; p < 16; ++p) {
        const Pixel pixel = pixel_of(p);
        const float* const mask =
            values_of(guess) + number * 16 * count + pixel.row * 4 * side + pixel.column;
        float* const patch = patches + p * kTokenTile;
        for_tokens(tile, side, [&](int64_t i, int64_t place) { patch[i] = mask[place]; });
      }
      kernels.add_patches(by, patches, to, patches + 16 * kTokenTile);
    }
  });
  return tokens;
}

at::Tensor attend_square(const at::Tensor& qkv, const at::Tensor& down, const at::Tensor& across) {
  constexpr int64_t kApart = 16;  // else all features of a key would fall into one set of a cache
  const int64_t images = qkv.size(0), count = qkv.size(1), features = qkv.size(2) / 3;
  const int64_t heads = down.size(1), side = down.size(3), part = features / heads;
  const int64_t tiles = (count + kTokenTile - 1) / kTokenTile, step = count + kApart;
  const at::Tensor values = qkv.contiguous();
  const auto columns = [](const at::Tensor& rows) { return rows.transpose(2, 3).contiguous(); };
  const auto heads_of = [&](int64_t which) {  // (N,heads,e,s s)
    return values.slice(2, which * features, (which + 1) * features)
        .unflatten(2, {heads, part})
        .permute({0, 2, 3, 1});
  };
  const at::Tensor queries = heads_of(0).contiguous(),
                   keys = at::constant_pad_nd(heads_of(1), {0, kApart}).contiguous(),
                   of_rows = columns(down), of_columns = columns(across);
  at::Tensor result = at::empty({images, count, features}, qkv.options());
  const float *const query = queries.const_data_ptr<float>(),
                     *const key = keys.const_data_ptr<float>(),
                     *const value = values.const_data_ptr<float>() + 2 * features,
                     *const row = of_rows.const_data_ptr<float>(),
                     *const column = of_columns.const_data_ptr<float>();
  float* const out = result.data_ptr<float>();
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(part)));
  const cpu::TokenKernels& kernels = cpu::token_kernels();
  at::parallel_for(0, images * heads * tiles, 1, [&](int64_t begin, int64_t end) {
    const at::Tensor scratch =
        at::empty({(2 * part + 2 * side + count) * kTokenTile}, queries.options());
    float* const own_query = scratch.data_ptr<float>();
    float *const made = own_query + part * kTokenTile, *const own_row = made + part * kTokenTile,
                 *const own_column = own_row + side * kTokenTile;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / tiles % heads, image = task / tiles / heads;
      const int64_t group = task / tiles, first = task % tiles * kTokenTile;
      const int64_t some = std::min(kTokenTile, count - first);
      copy_columns(query + group * part * count + first, count, part, some, factor, own_query);
      copy_columns(row + group * side * count + first, count, side, some, 1, own_row);
      copy_columns(column + group * side * count + first, count, side, some, 1, own_column);
      kernels.attend_square({key + group * part * step,
                             step,
                             value + image * count * 3 * features + head * part,
                             3 * features,
                             side,
                             part},
                            own_query,
                            own_row,
                            own_column,
                            made,
                            own_column + side * kTokenTile);
      for (int64_t i = 0; i < some; ++i) {
        float* const to = out + (image * count + first + i) * features + head * part;
        for (int64_t c = 0; c < part; ++c) to[c] = made[c * kTokenTile + i];
      }
    }
  });
  return result;
}

}  // namespace cytra::ops
