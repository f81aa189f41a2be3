#include "ops/tokens/kernels.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include <ATen/Version.h>

// Once per instruction set: the build has no -march (ops/norm/kernels.cpp). CYTRA_ROWS of two
// vectors each are summed at once: they hide the latency of a multiplication and leave registers
// for what is multiplied.
#define CYTRA_LANES 4
#define CYTRA_ROWS 6
#define CYTRA_TARGET
namespace cytra::ops::cpu::tokens_baseline {
#include "ops/tokens/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_ROWS
#undef CYTRA_TARGET

#if defined(__x86_64__)
#define CYTRA_LANES 8
#define CYTRA_ROWS 6
#define CYTRA_TARGET __attribute__((target("avx2,fma")))
namespace cytra::ops::cpu::tokens_avx2 {
#include "ops/tokens/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_ROWS
#undef CYTRA_TARGET

#define CYTRA_LANES 16
#define CYTRA_ROWS 12
#define CYTRA_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
namespace cytra::ops::cpu::tokens_avx512 {
#include "ops/tokens/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_ROWS
#undef CYTRA_TARGET
#endif

namespace cytra::ops::cpu {

const TokenKernels& token_kernels() {
  static const TokenKernels& chosen = []() -> const TokenKernels& {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability.rfind("AVX512", 0) == 0) return tokens_avx512::kTokenTable;
    if (capability == "AVX2") return tokens_avx2::kTokenTable;
#endif
    return tokens_baseline::kTokenTable;
  }();
  return chosen;
}

}  // namespace cytra::ops::cpu
