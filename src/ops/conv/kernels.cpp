#include "ops/conv/kernels.h"

#include <cstring>
#include <string>
#include <utility>

#include <ATen/Version.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

// Once per instruction set: the build has no -march (ops/norm/kernels.cpp). Sixteen sums hide the
// latency of a multiplication and leave registers for what is multiplied.
#if defined(__x86_64__)
#define CYTRA_LANES 8
#define CYTRA_CHANNELS 4
#define CYTRA_TARGET __attribute__((target("avx2,fma")))
namespace cytra::ops::cpu::avx2 {
#include "ops/conv/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_CHANNELS
#undef CYTRA_TARGET

#define CYTRA_LANES 16
#define CYTRA_CHANNELS 8
#define CYTRA_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma")))
#define CYTRA_BFLOAT16_TARGET \
  __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,fma")))
namespace cytra::ops::cpu::avx512 {
#include "ops/conv/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_CHANNELS
#undef CYTRA_TARGET
#undef CYTRA_BFLOAT16_TARGET
#endif

namespace cytra::ops::cpu {

#if defined(__x86_64__)
/// Tiles of AMX multiply eight times as fast: oneDNN has kernels for them.
static bool has_bfloat16_product_alone() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_tiles = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1U) != 0;
  return __builtin_cpu_supports("avx512bf16") && !has_tiles;
}
#endif

const ConvKernels* conv_kernels(bool is_bfloat16) {
#if defined(__x86_64__)
  static const std::string capability = at::get_cpu_capability();
  if (capability.rfind("AVX512", 0) == 0) {
    if (!is_bfloat16) return &avx512::kFloatKernels;
    static const bool is_fast = has_bfloat16_product_alone();
    if (is_fast) return &avx512::kBfloat16Kernels;
  }
  if (capability == "AVX2" && !is_bfloat16) return &avx2::kFloatKernels;
#endif
  return nullptr;
}

}  // namespace cytra::ops::cpu
