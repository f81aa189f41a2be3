#pragma once
// The passes of ops/windows/sums.h by ATen's operations.
#include "ops/windows/sums.h"

namespace cytra::ops {

/// The passes by ATen's operations, on any device. The grid's map is on the device of the tensors.
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
