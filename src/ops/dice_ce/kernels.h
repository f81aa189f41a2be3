#pragma once
// Inner loops of class_sums() over a tile of voxels.
#include <cstdint>

#include "ops/simd/short_floats.h"

namespace cytra::ops::cpu {

constexpr int64_t kClassTile = 256;  // voxels, a multiple of every vector

/// Rows of kClassTile values. Voxels after the end of an image have the mask 0.
struct ClassTile {
  float* logits;       // a row per class; gradients() puts its result here
  const float* truth;  // class numbers, one row; of masks a row per channel
  const float* mask;
  float* spare;  // room for as many rows as logits has
  int64_t classes;
  bool is_exclusive, squared;
};

/// T: float, Bfloat16 or Float16, of the logits and of their gradients.
template <class T>
struct ClassKernels {
  /// Adds the tile's sums: the first three have a number for each class, cross_entropy is one
  /// number. Overwrites logits.
  void (*sums)(const ClassTile& tile,
               double* both,
               double* prediction,
               double* truth,
               double* cross_entropy);
  /// Computes the gradients of the logits from those of the sums.
  void (*gradients)(const ClassTile& tile,
                    const float* both,
                    const float* prediction,
                    float cross_entropy);
  /// Converts contiguous values to floats and back, rounded to the nearest.
  void (*widen)(const T* from, int64_t count, float* to);
  void (*narrow)(const float* from, int64_t count, T* to);
};

/// The kernels for this processor's instruction set, which ATen chose (ATEN_CPU_CAPABILITY sets
/// it).
template <class T>
const ClassKernels<T>& class_kernels();

}  // namespace cytra::ops::cpu
