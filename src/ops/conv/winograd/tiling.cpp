#include "ops/conv/winograd/tiling.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/memory.h"

namespace cytra::ops::cpu {
float* scratch(int64_t values) {
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  thread_local std::unique_ptr<float, Free> memory;
  thread_local int64_t size = 0;
  if (values > size) {
    constexpr int64_t kPage = int64_t{2} << 20;
    const auto bytes = static_cast<std::size_t>(divide_up(values * 4, kPage) * kPage);
    memory.reset();
    size = 0;
    memory.reset(static_cast<float*>(std::aligned_alloc(kPage, bytes)));
    if (memory == nullptr) throw std::bad_alloc();
    prefer_large_pages(memory.get(), bytes);
    size = static_cast<int64_t>(bytes / 4);
  }
  return memory.get();
}

bool is_flat(const at::Tensor& weight) {
  return weight.dim() == 4 || weight.size(2) == 1;
}

at::MemoryFormat channels_last(const at::Tensor& tensor) {
  return tensor.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

const WinogradKernels::PixelTransforms& transforms_of(const WinogradKernels::Transforms& transforms,
                                                      at::ScalarType type) {
  return type == at::kFloat      ? transforms.of_floats
         : type == at::kBFloat16 ? transforms.of_bfloats
                                 : transforms.of_halves;
}

WinogradKernels::Weights weights_of(const at::Tensor& weight, bool is_turned) {
  const int64_t last = weight.dim() - 1;
  WinogradKernels::Weights weights{weight.data_ptr<float>(),
                                   weight.stride(is_turned ? 0 : 1),
                                   weight.stride(is_turned ? 1 : 0),
                                   is_flat(weight) ? 0 : weight.stride(2),
                                   weight.stride(last - 1),
                                   weight.stride(last)};
  if (is_turned) {
    for (int64_t* step : {&weights.plane_step, &weights.row_step, &weights.column_step}) {
      weights.first += 2 * *step;
      *step = -*step;
    }
  }
  return weights;
}

Pixels::Pixels(const at::Tensor& images)
    : data(static_cast<std::byte*>(images.data_ptr())),
      samples(images.size(0)),
      channels(images.size(1)),
      sides{1, 1, 1},
      steps{0, 0, 0},
      sample_step(images.stride(0) * images.element_size()),
      value_bytes(images.element_size()) {
  for (int64_t side = 2; side < images.dim(); ++side) {
    const auto i = static_cast<std::size_t>(side + 3 - images.dim());
    sides[i] = images.size(side);
    steps[i] = images.stride(side) * value_bytes;
  }
}

PixelBoxes::PixelBoxes(const Pixels& image, const Triple& sizes)
    : image_(image),
      sizes_(sizes),
      zeros_(static_cast<std::size_t>(image.channels * image.value_bytes)) {
  for (int64_t z = 0; z < sizes[0]; ++z) {
    for (int64_t y = 0; y < sizes[1]; ++y) {
      for (int64_t x = 0; x < sizes[2]; ++x)
        offsets_.push_back(z * image.steps[0] + y * image.steps[1] + x * image.steps[2]);
    }
  }
}

void PixelBoxes::addresses(int64_t sample, const Triple& first, const std::byte** to) const {
  const auto is_inside = [&](std::size_t side, int64_t i) {
    return i >= 0 && i < image_.sides[side];
  };
  Triple last = first;
  bool is_whole = true;
  for (std::size_t side = 0; side < 3; ++side) {
    last[side] += sizes_[side] - 1;
    is_whole = is_whole && is_inside(side, first[side]) && is_inside(side, last[side]);
  }
  if (is_whole) {
    const std::byte* const origin = image_.at(sample, first);
    for (std::size_t i = 0; i < offsets_.size(); ++i) to[i] = origin + offsets_[i];
    return;
  }
  for (int64_t z = first[0]; z <= last[0]; ++z) {
    for (int64_t y = first[1]; y <= last[1]; ++y) {
      const bool has_row = is_inside(0, z) && is_inside(1, y);
      const std::byte* const row = has_row ? image_.at(sample, {z, y, 0}) : nullptr;
      for (int64_t x = first[2]; x <= last[2]; ++x)
        *to++ = has_row && is_inside(2, x) ? row + x * image_.steps[2] : zeros_.data();
    }
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

Triple Tiling::patch(const Position& tile) const {
  Triple first = tile.first;
  for (std::size_t side = 0; side < 3; ++side) first[side] -= padding_[side];
  return first;
}

WinogradKernels::Tile Tiling::tile(const Position& tile,
                                   const Pixels& output,
                                   bool past_caches) const {
  const auto present = [&](std::size_t side) {
    return std::min(sizes_[side], out_[side] - tile.first[side]);
  };
  return {output.at(tile.sample, tile.first),
          output.steps[0],
          output.steps[1],
          output.steps[2],
          present(0),
          present(1),
          present(2),
          past_caches};
}

}  // namespace cytra::ops::cpu
