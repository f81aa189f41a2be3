#include "ops/windows/rows.h"

#include "ops/simd/dispatch.h"

namespace cytra::ops::cpu {
namespace window_loops {
#define CYTRA_KERNELS "ops/windows/rows.inc"
#include "ops/simd/per_isa.inc"
}  // namespace window_loops

const RowLoops& row_loops() {
  return chosen(
      window_loops::baseline::kTable, window_loops::avx2::kTable, window_loops::avx512::kTable);
}

}  // namespace cytra::ops::cpu
