#pragma once
// The passes of ops/windows/sums.h on a GPU, in libcytra_cuda.so. All pointers are device
// pointers.
#include <array>
#include <cstdint>

#include <c10/core/ScalarType.h>

#include "ops/windows/sums.h"

namespace cytra::ops {

/// Windows first, first+1, ... of an image (C,L,Y,X), whose row z is stored at z modulo L.
struct CudaGather {
  int device;
  const void* image;
  c10::ScalarType type;  // float32, bfloat16 or float16
  std::array<int64_t, 4> image_strides;
  int64_t length;
  /// The windows' starts along each axis, and where each voxel of the padded image comes from.
  std::array<const int32_t*, 3> starts, source;
  std::array<int64_t, 3> counts;  // of starts
  int64_t first;
  float pad_value;
  float* windows;
  std::array<int64_t, 5> shape, strides;  // (S,C,z,y,x)
};
/// Adds one window's values to the sums. Shape: values (K,z,y,x) with `strides`, of the window's
/// part in the image (`from` to `to`); sums (K,L,Y,X).
struct CudaSum {
  int device;
  const void* values;
  c10::ScalarType type;  // float32, bfloat16 or float16
  std::array<int64_t, 4> strides;
  std::array<int64_t, 3> from, to, fresh;
  const float* map;  // weights of that part
  std::array<int64_t, 2> map_strides;
  float* sums;
  std::array<int64_t, 4> shape;
};
/// Rows of sums (K,rows,width) with `sum_strides` -> out (K',rows,width) with `out_strides`.
struct CudaFinish {
  int device;
  const float* sums;
  const float* weights;  // (rows,width)
  int64_t classes, rows, width;
  std::array<int64_t, 2> sum_strides, out_strides;  // from class to class, from row to row
  Finish::Kind kind;
  float cut;
  void* out;
  c10::ScalarType type;
  int64_t* bad;  // grows by how many sums are NaN or infinite; null: they are not counted
};
using CudaGatherPass = bool (*)(const CudaGather& task);  // false: a type that it does not have
using CudaSumPass = void (*)(const CudaSum& task);
using CudaFinishPass = bool (*)(const CudaFinish& task);  // false: a type that it does not have
constexpr char kCudaGather[] = "cytra_cuda_gather";
constexpr char kCudaSum[] = "cytra_cuda_sum";
constexpr char kCudaFinish[] = "cytra_cuda_finish";

}  // namespace cytra::ops
