#pragma once
// Inner loops of the weight gradient of a convolution (ops/conv/weight_grad.cpp), over packed
// tiles: a few channels of many pixels. A unit of a tile is the input of one multiplication: a
// pixel in float32, two in bfloat16, which lie beside each other in every channel.
#include <cstdint>

namespace cytra::ops::cpu {

/// A row of an image whose channels come last. Column i of the packed row is column
/// `first` + i `step` of the image: zeros where it has none, and in channels from `present` on.
struct ConvRow {
  const void* pixels;  // of the tile's first channel
  int64_t pixel_step;  // values from one pixel to the next
  int64_t columns, first, step, present;
};

/// The units of a tile that are multiplied: `planes` of `rows` of `units`, without gaps in the
/// gradient's tile, and with these steps (values) in the image's.
struct ConvUnits {
  int64_t planes, rows, units, plane_step, row_step;
};

struct ConvKernels {
  int64_t channels, lanes;  // of the image's tile; of the gradient's narrow one, a wide one has two
  int64_t unit;             // pixels
  /// Packs `units` of a tile of `width` channels.
  void (*pack)(const ConvRow& row, int64_t units, int64_t width, void* tile);
  /// sums[c][k] += image[unit][c] * grad[unit][k], over the units; one after the other in float32.
  void (*multiply)(const void* image, const void* grad, const ConvUnits& of, float* sums);
  void (*multiply_wide)(const void* image, const void* grad, const ConvUnits& of, float* sums);
};

/// The kernels for this processor's instruction set, which ATen chose (ATEN_CPU_CAPABILITY sets
/// it). Null: none.
const ConvKernels* conv_kernels(bool is_bfloat16);

}  // namespace cytra::ops::cpu
