#pragma once
// class_sums() of ops/dice_ce/dice_ce.h on a GPU, in libcytra_cuda.so. All pointers are device
// pointers.
#include <cstdint>

#include <c10/core/ScalarType.h>

namespace cytra::ops::gpu {

struct CudaClasses {
  int device;
  c10::ScalarType type;  // of the logits: float32, bfloat16 or float16
  int64_t images, classes, voxels;
  bool is_channels_last;  // the logits
  bool is_exclusive, squared;
  const void* logits;   // (N,K,voxels)
  const float* target;  // (N,1,voxels) of class numbers; else (N,K,voxels)
  const float* mask;    // (N,1,voxels); null: all count
};
/// Voxels of one block: `of_blocks` has room for (N,blocks,3K+1) with blocks = voxels by this,
/// rounded up.
constexpr int64_t kClassBlock = 2048;

struct CudaClassSums {
  CudaClasses classes;
  double* of_blocks;
  float *both, *prediction, *truth;  // (N,K)
  float* cross_entropy;              // (N)
};
/// The gradients of the sums -> that of the logits, like them. A null gradient is 0.
struct CudaClassGrad {
  CudaClasses classes;
  const float *both, *prediction, *cross_entropy;
  void* grad;
};
using CudaClassSumsPass = void (*)(const CudaClassSums& task);
using CudaClassGradPass = void (*)(const CudaClassGrad& task);
constexpr char kCudaClassSums[] = "cytra_cuda_class_sums";
constexpr char kCudaClassGrad[] = "cytra_cuda_class_grad";

}  // namespace cytra::ops::gpu
