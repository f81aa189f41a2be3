#include "ops/conv/winograd/tiling.h"

#include <algorithm>

namespace cytra::ops::cpu {
namespace {

/// The addresses of planes x rows x columns pixels from `first` on, which may lie outside.
void addresses(const Pixels& image,
               int64_t sample,
               const Triple& first,
               const Triple& sizes,
               const float* zeros,
               const float** to) {
  const auto is_inside = [&](int side, int64_t i) { return i >= 0 && i < image.sides[side]; };
  for (int64_t z = first[0]; z < first[0] + sizes[0]; ++z) {
    for (int64_t y = first[1]; y < first[1] + sizes[1]; ++y) {
      const bool has_row = is_inside(0, z) && is_inside(1, y);
      const float* const row = has_row ? image.at(sample, {z, y, 0}) : nullptr;
      for (int64_t x = first[2]; x < first[2] + sizes[2]; ++x)
        *to++ = has_row && is_inside(2, x) ? row + x * image.steps[2] : zeros;
    }
  }
}

}  // namespace

Pixels::Pixels(const at::Tensor& images)
    : data(images.data_ptr<float>()),
      samples(images.size(0)),
      channels(images.size(1)),
      sides{1, 1, 1},
      steps{0, 0, 0},
      sample_step(images.stride(0)) {
  for (int64_t side = 2; side < images.dim(); ++side) {
    const auto i = static_cast<std::size_t>(side + 3 - images.dim());
    sides[i] = images.size(side);
    steps[i] = images.stride(side);
  }
}

Tiling::Tiling(int64_t samples, const Triple& out, const Triple& padding, bool is_flat)
    : samples_(samples), out_(out), padding_(padding) {
  const auto planes = [&](int depth) {  // that are multiplied
    const auto& [of_output, of_input] = WinogradKernels::kDepths[depth];
    return divide_up(out[0], of_output) * of_input;
  };
  if (!is_flat) depth_ = planes(2) < planes(1) ? 2 : 1;
  sizes_ = {depth().out, WinogradKernels::kOut, WinogradKernels::kOut};
  for (std::size_t side = 0; side < 3; ++side) grid_[side] = divide_up(out[side], sizes_[side]);
}

Tiling::Position Tiling::position(int64_t tile) const {
  Position position;
  for (std::size_t side = 3; side-- > 0; tile /= grid_[side])
    position.first[side] = tile % grid_[side] * sizes_[side];
  position.sample = tile;
  return position;
}

void Tiling::patch(const Position& tile,
                   const Pixels& input,
                   const float* zeros,
                   const float** pixels) const {
  Triple first;
  for (std::size_t side = 0; side < 3; ++side) first[side] = tile.first[side] - padding_[side];
  addresses(input,
            tile.sample,
            first,
            {depth().in, WinogradKernels::kIn, WinogradKernels::kIn},
            zeros,
            pixels);
}

void Tiling::pixels(const Position& tile,
                    const Pixels& output,
                    const float* zeros,
                    const float** pixels) const {
  addresses(output, tile.sample, tile.first, sizes_, zeros, pixels);
}

WinogradKernels::Tile Tiling::tile(const Position& tile, const Pixels& output) const {
  const auto present = [&](std::size_t side) {
    return std::min(sizes_[side], out_[side] - tile.first[side]);
  };
  return {output.at(tile.sample, tile.first),
          output.steps[0],
          output.steps[1],
          output.steps[2],
          present(0),
          present(1),
          present(2)};
}

}  // namespace cytra::ops::cpu
