#pragma once
// What instance and group norm of ops/norm.h sum up, for a GPU's threads; on a CPU for tests. A
// cell is a channel of a sample: number n C + c. Sums are float32 over at most kTerms values and
// float64 from there on.

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define CYTRA_CELL __host__ __device__ __forceinline__
#else
#define CYTRA_CELL inline
#endif

namespace cytra::ops::gpu {

constexpr int64_t kTerms = 64;
constexpr int64_t kPivotTerms = 8;

/// Which values are a cell's, and which cells share a mean and a variance.
struct Cells {
  int64_t samples, channels, voxels, groups;
  bool is_channels_last;
  double eps;
  float slope;  // of the leaky ReLU after it; 1: none

  CYTRA_CELL int64_t count() const { return samples * channels; }
  CYTRA_CELL int64_t index(int64_t cell, int64_t voxel) const {
    return is_channels_last ? (cell / channels * voxels + voxel) * channels + cell % channels
                            : cell * voxels + voxel;
  }
  CYTRA_CELL int64_t cell_of(int64_t index) const {
    return is_channels_last ? index / (voxels * channels) * channels + index % channels
                            : index / voxels;
  }
  CYTRA_CELL int64_t shares() const { return samples * groups; }
  CYTRA_CELL int64_t share_cells() const { return channels / groups; }
  /// The i-th cell of a share.
  CYTRA_CELL int64_t cell(int64_t share, int64_t i) const { return share * share_cells() + i; }
};

/// Of a cell.
struct Coefficients {
  float center, scale, shift;       // z = (x - center) scale + shift
  float grad_scale, slant, offset;  // dx = dz grad_scale + (x - center) slant + offset
};

struct Sums {
  double first, second;
};

/// x - pivot and its square: the pivot, some values' mean, keeps the digits of a variance that is
/// small against the mean.
template <class T>
struct MomentTerm {
  Cells cells;
  const T* x;
  CYTRA_CELL float pivot(int64_t cell) const {
    const int64_t count = cells.voxels < kPivotTerms ? cells.voxels : kPivotTerms;
    float sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += static_cast<float>(x[cells.index(cell, i)]);
    return sum / static_cast<float>(count);
  }
  CYTRA_CELL float origin(int64_t cell) const { return pivot(cell); }
  CYTRA_CELL void add(
      int64_t cell, int64_t voxel, float origin, float& first, float& second) const {
    const float value = static_cast<float>(x[cells.index(cell, voxel)]) - origin;
    first += value;
    second += value * value;
    static_cast<void>(cell);
  }
};

/// dz and dz (x - center), with dz = grad act'(z).
template <class T>
struct GradTerm {
  Cells cells;
  const T *x, *grad;
  const Coefficients* coefficients;
  CYTRA_CELL float origin(int64_t) const { return 0; }
  CYTRA_CELL float dz(int64_t cell, int64_t at) const {
    const Coefficients& of = coefficients[cell];
    const float z = (static_cast<float>(x[at]) - of.center) * of.scale + of.shift;
    return static_cast<float>(grad[at]) * (z > 0 ? 1.F : cells.slope);
  }
  CYTRA_CELL void add(int64_t cell, int64_t voxel, float, float& first, float& second) const {
    const int64_t at = cells.index(cell, voxel);
    const float value = dz(cell, at);
    first += value;
    second += value * (static_cast<float>(x[at]) - coefficients[cell].center);
  }
};

/// The sums of a cell's voxels first, first + step ...
template <class Term>
CYTRA_CELL Sums sums_of(const Term& term, int64_t cell, int64_t first, int64_t end, int64_t step) {
  const float origin = term.origin(cell);
  Sums sums{0, 0};
  for (int64_t begin = first; begin < end; begin += kTerms * step) {
    const int64_t stop = begin + kTerms * step < end ? begin + kTerms * step : end;
    float one = 0, other = 0;
    for (int64_t voxel = begin; voxel < stop; voxel += step)
      term.add(cell, voxel, origin, one, other);
    sums.first += one;
    sums.second += other;
  }
  return sums;
}

}  // namespace cytra::ops::gpu
