#pragma once
// Instance and group norm of ops/norm/norm.h on a GPU, in libcytra_cuda.so. All pointers are
// device pointers.
#include <algorithm>

#include <c10/core/ScalarType.h>

#include "ops/cuda/norm_cells.h"

namespace cytra::ops::gpu {

/// Room for the sums of each cell: (splits, cells).
struct CudaSums {
  Sums* of_splits;
  int64_t splits;
};
/// The number of parts that a cell's sums have: enough blocks for a large GPU, and for each thread
/// some vectors, about as many values as it may sum in float32.
inline int64_t splits_of(const Cells& cells, int64_t bytes_of_value) {
  constexpr int64_t kMost = 512, kBlocks = 1024, kLeastVectors = 4;
  const int vector = static_cast<int>(16 / bytes_of_value);
  const int width = cells.is_channels_last ? std::min(vector, kSumWidth) : vector;
  const int64_t lines = kThreads / cells.lanes(width), vectors = cells.lines(width) / lines;
  const int64_t enough = kBlocks / std::max<int64_t>(1, cells.blocks(width));
  const int64_t least = vectors * (cells.is_channels_last ? 1 : width) / kTerms;
  const int64_t most = std::clamp<int64_t>(vectors / kLeastVectors, 1, kMost);
  return std::clamp(std::max(enough, least), int64_t{1}, most);
}

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
