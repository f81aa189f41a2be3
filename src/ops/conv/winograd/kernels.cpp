#include "ops/conv/winograd/kernels.h"

#include <utility>

#include "ops/simd/dispatch.h"
#include "ops/simd/short_floats.h"

namespace cytra::ops::cpu {
namespace winograd_loops {
#define CYTRA_KERNELS "ops/conv/winograd/kernels.inc"
#include "ops/simd/per_isa.inc"
}  // namespace winograd_loops

const WinogradKernels* winograd_kernels() {
#if defined(__x86_64__)
  if (isa() == Isa::avx512) return &winograd_loops::avx512::kTable;
  if (isa() == Isa::avx2) return &winograd_loops::avx2::kTable;
#endif
  return nullptr;
}

}  // namespace cytra::ops::cpu
