#pragma once
// How Winograd's kernels cut images into tiles, and what else its passes share.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ops/conv/shapes.h"
#include "ops/conv/winograd/kernels.h"

namespace cytra::ops::cpu {

/// Values between the points of a block: with none, all points would share the same cache lines.
constexpr int64_t kStagger = 16;

/// Memory of this thread for so many values, which the next call may give again. It is kept, as
/// its first use costs as much as a transform. Throws: std::bad_alloc.
float* scratch(int64_t values);

/// Whether a kernel has no depth: its convolution is one of planes.
bool is_flat(const at::Tensor& weight);
/// The memory format of a batch of images, or of a weight, with the channels last.
at::MemoryFormat channels_last(const at::Tensor& tensor);
/// The transforms for pixels of this type: float32, bfloat16 or float16.
const WinogradKernels::PixelTransforms& transforms_of(const WinogradKernels::Transforms& transforms,
                                                      at::ScalarType type);
/// A weight of float32 as its convolution reads it; `is_turned`: as that of gradients does, from
/// output to input channels and with the kernel turned around.
WinogradKernels::Weights weights_of(const at::Tensor& weight, bool is_turned);

/// A batch of images whose channels come last.
struct Pixels {
  explicit Pixels(const at::Tensor& images);  // (N,C,[D,]H,W), channels last
  std::byte* data;
  int64_t samples, channels;
  Triple sides, steps;  // steps in bytes
  int64_t sample_step, value_bytes;
  std::byte* at(int64_t sample, const Triple& position) const {
    return data + sample * sample_step + position[0] * steps[0] + position[1] * steps[1] +
           position[2] * steps[2];
  }
};

/// Boxes of pixels of a batch, as addresses: those outside of an image are zeros elsewhere.
class PixelBoxes {
 public:
  static constexpr int64_t kMost = 6 * 6 * 6;  // pixels of a box

  PixelBoxes(const Pixels& image, const Triple& sizes);
  /// The addresses of the pixels of the box that begins at `first`, which may lie outside.
  void addresses(int64_t sample, const Triple& first, const std::byte** to) const;

 private:
  Pixels image_;
  Triple sizes_;
  std::vector<int64_t> offsets_;
  std::vector<std::byte> zeros_;
};

/// The tiles of a batch's output, and the patches of its input that they come from.
class Tiling {
 public:
  /// For an output of `out` pixels a side, which begins `padding` pixels before its input.
  Tiling(int64_t samples, const Triple& out, const Triple& padding, bool is_flat);

  struct Position {
    int64_t sample;
    Triple first;  // pixel of the output
  };

  int64_t tiles() const { return samples_ * grid_[0] * grid_[1] * grid_[2]; }
  int64_t points() const { return depth().in * WinogradKernels::kIn * WinogradKernels::kIn; }
  int depth_index() const { return depth_; }
  const WinogradKernels::Depth& depth() const { return WinogradKernels::kDepths[depth_]; }
  Triple tile_sizes() const { return sizes_; }
  Triple patch_sizes() const { return {depth().in, WinogradKernels::kIn, WinogradKernels::kIn}; }

  Position position(int64_t tile) const;
  /// The first pixel of a tile's patch in the input.
  Triple patch(const Position& tile) const;
  /// The tile of `output` to write.
  WinogradKernels::Tile tile(const Position& tile, const Pixels& output, bool past_caches) const;

 private:
  int64_t samples_;
  Triple out_, padding_, grid_, sizes_;  // of a tile
  int depth_ = 0;
};

}  // namespace cytra::ops::cpu
