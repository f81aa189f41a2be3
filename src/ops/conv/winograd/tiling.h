#pragma once
// How Winograd's kernels cut images into tiles.
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/conv/shapes.h"
#include "ops/conv/winograd/kernels.h"

namespace cytra::ops::cpu {

/// A batch of images whose channels come last.
struct Pixels {
  explicit Pixels(const at::Tensor& images);  // (N,C,[D,]H,W), channels last
  float* data;
  int64_t samples, channels;
  Triple sides, steps;  // steps in values
  int64_t sample_step;
  float* at(int64_t sample, const Triple& position) const {
    return data + sample * sample_step + position[0] * steps[0] + position[1] * steps[1] +
           position[2] * steps[2];
  }
};

/// The tiles of a batch's output, and the patches of its input that they come from.
class Tiling {
 public:
  /// For an output of `out` pixels a side, which begins `padding` pixels before its input.
  Tiling(int64_t samples, const Triple& out, const Triple& padding, bool is_flat);

  static constexpr int64_t kMostPixels = 6 * 6 * 6;
  struct Position {
    int64_t sample;
    Triple first;  // pixel of the output
  };

  int64_t tiles() const { return samples_ * grid_[0] * grid_[1] * grid_[2]; }
  int64_t points() const { return depth().in * WinogradKernels::kIn * WinogradKernels::kIn; }
  int depth_index() const { return depth_; }
  const WinogradKernels::Depth& depth() const { return WinogradKernels::kDepths[depth_]; }

  Position position(int64_t tile) const;
  /// The addresses of a tile's patch in `input`: points() of them, `zeros` where it has no pixel.
  void patch(const Position& tile,
             const Pixels& input,
             const float* zeros,
             const float** pixels) const;
  /// The addresses of a tile's own pixels in `output`, `zeros` where it has none.
  void pixels(const Position& tile,
              const Pixels& output,
              const float* zeros,
              const float** pixels) const;
  /// The tile of `output` to write.
  WinogradKernels::Tile tile(const Position& tile, const Pixels& output) const;

 private:
  int64_t samples_;
  Triple out_, padding_, grid_, sizes_;  // of a tile
  int depth_ = 0;
};

}  // namespace cytra::ops::cpu
