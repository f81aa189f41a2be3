#pragma once
// Instance and group norm of ops/norm.h on a GPU, in libcytra_cuda.so. Every pointer is one of the
// device.
#include <c10/core/ScalarType.h>

#include "ops/cuda/norm_cells.h"

namespace cytra::ops::gpu {

/// Room for the sums of each cell: (splits, cells).
struct CudaSums {
  Sums* of_splits;
  int64_t splits;
};
int64_t constexpr kMostSplits = 512;

/// x (N,C,voxels) -> y like it, and `statistics` (shares,2).
struct CudaNorm {
  int device;
  c10::ScalarType type;  // of x and y: float32, bfloat16 or float16
  Cells cells;
  const void* x;
  void* y;
  const float *weight, *bias;  // (C); null: none
  double* statistics;
  Coefficients* coefficients;  // (cells)
  CudaSums sums;
};
/// grad like y -> dx, dweight and dbias.
struct CudaNormGrad {
  CudaNorm norm;  // its y is not read; its statistics and coefficients are
  const void* grad;
  void* dx;                // null: not needed
  float *dweight, *dbias;  // (C); null, both: not needed
};
using CudaNormPass = void (*)(const CudaNorm& task);
using CudaNormGradPass = void (*)(const CudaNormGrad& task);
constexpr char kCudaNorm[] = "cytra_cuda_norm";
constexpr char kCudaNormGrad[] = "cytra_cuda_norm_grad";

}  // namespace cytra::ops::gpu
