#include "ops/conv/kernels.h"

#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "ops/simd/dispatch.h"

namespace cytra::ops::cpu {
namespace conv_loops {
#define CYTRA_KERNELS "ops/conv/kernels.inc"
#include "ops/simd/per_isa.inc"
}  // namespace conv_loops

#if defined(__x86_64__)
/// Whether the processor multiplies bfloat16 without AMX. Tiles of AMX multiply eight times as
/// fast, and oneDNN has kernels for them.
static bool has_bfloat16_product_alone() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_tiles = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1U) != 0;
  return __builtin_cpu_supports("avx512bf16") && !has_tiles;
}
#endif

const ConvKernels* conv_kernels(bool is_bfloat16) {
#if defined(__x86_64__)
  static const bool is_fast = isa() == Isa::avx512 && has_bfloat16_product_alone();
  if (is_bfloat16) return is_fast ? &conv_loops::avx512::kBfloat16Kernels : nullptr;
  if (isa() == Isa::avx512) return &conv_loops::avx512::kFloatKernels;
  if (isa() == Isa::avx2) return &conv_loops::avx2::kFloatKernels;
#endif
  return nullptr;
}

}  // namespace cytra::ops::cpu
