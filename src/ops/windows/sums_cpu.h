#pragma once
// The passes of ops/windows/sums.h on a CPU, by kernels of our own.
#include "ops/windows/sums.h"

namespace cytra::ops {

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

}  // namespace cytra::ops
