#pragma once
// Rows of the sliding window's passes on a CPU, and the loops over them.
#include <cstdint>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "ops/windows/sums.h"

namespace cytra::ops::cpu {

/// Weights of a window's row: across * along_x[x], at least `floor`.
struct RowWeight {
  const float* along_x;
  float across, floor;
};

/// A window's values, every `stride`th, that go into a row of sums: those from `fresh` on are the
/// first ones there.
template <class T>
struct SumRow {
  const T* values;
  int64_t stride;
  float* sums;
  int64_t fresh, end;
  RowWeight weight;
};

/// A line of voxels: of sums (classes, stride) into out (channels, out_stride).
struct FinishRow {
  const float* sums;
  int64_t classes, stride, voxels;
  const float* weights;  // nullptr: 1
  Finish::Kind kind;
  float cut;  // of Kind::threshold, as a logit
  float* out;
  int64_t out_stride;
};

struct RowLoops {
  void (*sum_float)(const SumRow<float>& row);
  void (*sum_bfloat16)(const SumRow<at::BFloat16>& row);
  void (*sum_half)(const SumRow<at::Half>& row);
  void (*add_weights)(const RowWeight& row, float* line, int64_t count);
  bool (*finish)(const FinishRow& row);  // false: a sum is NaN or infinite
};

/// The loops for this processor's instruction set, which ATen chose (ATEN_CPU_CAPABILITY sets it).
const RowLoops& row_loops();

}  // namespace cytra::ops::cpu
