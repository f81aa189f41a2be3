#pragma once
// Inner loops of the norms over a block of memory (rows, channels): of a
// channels-first tensor part of one plane, with `channels` 1; of a channels-last tensor some
// pixels.
#include <cstdint>

#include "ops/simd/short_floats.h"

namespace cytra::ops::cpu {

struct BlockSize {
  int64_t rows, channels;
};

/// Per channel, one array of `channels` values after the other.
enum NormCoefficient { kCenter, kScale, kShift, kNormCoefficients };
/// Continues NormCoefficient.
enum GradCoefficient { kGradScale = kNormCoefficients, kSlant, kOffset, kGradCoefficients };

/// T: float, Bfloat16 or Float16; sums and coefficients are float32 and up.
template <class T>
struct Kernels {
  /// Per channel the mean and the sum of squared deviations from it; `scratch` has room for them
  /// too.
  void (*moments)(const T* x, BlockSize block, double* mean, double* squares, float* scratch);
  /// y = act((x - center) * scale + shift), act(z) = z > 0 ? z : slope * z.
  void (*normalize)(const T* x, T* y, BlockSize block, const float* coefficients, float slope);
  /// Per channel, with dz = grad * act'(z) and u = x, or u = z when `kept` is the output:
  /// the sums of dz and of dz * (u - center).
  void (*grad_sums)(const T* kept,
                    bool is_output,
                    const T* grad,
                    BlockSize block,
                    const float* coefficients,
                    float slope,
                    double* sum,
                    double* product);
  /// dx = dz * grad_scale + (u - center) * slant + offset.
  void (*grad_input)(const T* kept,
                     bool is_output,
                     const T* grad,
                     T* dx,
                     BlockSize block,
                     const float* coefficients,
                     float slope);
};

/// The kernels for this processor's instruction set, which ATen chose (ATEN_CPU_CAPABILITY sets
/// it).
template <class T>
const Kernels<T>& kernels();

}  // namespace cytra::ops::cpu
