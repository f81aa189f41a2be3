#pragma once
// The two ways in which the passes of ops/windows/sums.h are computed.
#include "ops/windows/sums.h"

namespace cytra::ops {

struct WindowPasses {
  decltype(&ops::gather) gather;
  decltype(&ops::accumulate) accumulate;
  decltype(&ops::finish_rows) finish_rows;
  /// Shape: sums (K,V) float32, weights (V) float32 or undefined, out (K',V).
  void (*finish_voxels)(const at::Tensor& sums,
                        const at::Tensor& weights,
                        const Finish& finish,
                        const at::Tensor& out);
};
/// Kernels of our own, on a CPU.
const WindowPasses& cpu_passes();
/// ATen's operations, on any device: the grid's map is on that of the tensors. On a GPU the kernels
/// of libcytra_cuda.so take what they can.
const WindowPasses& aten_passes();

}  // namespace cytra::ops
