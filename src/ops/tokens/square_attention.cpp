// Part of ops/tokens/tokens.h: attention of all tokens of squares.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "ops/tokens/kernels.h"
#include "ops/tokens/tokens.h"

namespace cytra::ops {
namespace {

using cpu::kTokenTile;

/// Columns from `first` on of a matrix, as a tile: 0 where there are no more.
void copy_columns(
    const float* from, int64_t step, int64_t rows, int64_t count, float factor, float* tile) {
  for (int64_t r = 0; r < rows; ++r, from += step, tile += kTokenTile) {
    for (int64_t i = 0; i < count; ++i) tile[i] = from[i] * factor;
    std::fill_n(tile + count, kTokenTile - count, 0.0F);
  }
}

}  // namespace

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
