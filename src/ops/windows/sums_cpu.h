#pragma once
// What the passes of window_sums.h share: the box of a window, and the kernels on a CPU.
#include "ops/windows/sums.h"

namespace cytra::ops {

/// A window's part in the image along each axis.
struct WindowBox {
  std::array<int64_t, 3> from, to;  // in the image
  std::array<int64_t, 3> skip;      // voxels of the window in front of `from`
  /// No window before covers a voxel whose every coordinate is from here on.
  std::array<int64_t, 3> fresh;
};
WindowBox box_of(const WindowGrid& grid, int64_t w);

namespace cpu {
void gather(const at::Tensor& image,
            const WindowGrid& grid,
            int64_t first,
            double pad_value,
            const at::Tensor& windows);
void accumulate(const at::Tensor& values,
                const WindowGrid& grid,
                int64_t first,
                const at::Tensor& sums);
/// False: a sum is NaN or infinite.
bool finish_rows(const at::Tensor& sums,
                 const WindowGrid& grid,
                 int64_t begin,
                 int64_t end,
                 const Finish& finish,
                 const at::Tensor& out);
/// Shape: sums (K,V) float32, weights (V) float32 or undefined, out (K',V).
bool finish_voxels(const at::Tensor& sums,
                   const at::Tensor& weights,
                   const Finish& finish,
                   const at::Tensor& out);
}  // namespace cpu

/// By ATen's operations, on any device. The grid's map is on the device of the tensors.
namespace aten {
void gather(const at::Tensor& image,
            const WindowGrid& grid,
            int64_t first,
            double pad_value,
            const at::Tensor& windows);
void accumulate(const at::Tensor& values,
                const WindowGrid& grid,
                int64_t first,
                const at::Tensor& sums);
void finish_rows(const at::Tensor& sums,
                 const WindowGrid& grid,
                 int64_t begin,
                 int64_t end,
                 const Finish& finish,
                 const at::Tensor& out,
                 const at::Tensor& bad);
/// sums (K,...), weights like one class or undefined -> out (K',...).
void finish_voxels(const at::Tensor& sums,
                   const at::Tensor& weights,
                   const Finish& finish,
                   const at::Tensor& out,
                   const at::Tensor& bad);
}  // namespace aten

}  // namespace cytra::ops
