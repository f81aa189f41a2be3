#include "ops/dice_ce_kernels.h"

#include <cstring>
#include <string>

#include <ATen/Version.h>

// Once per instruction set: the build has no -march (ops/norm_kernels.cpp).
#define CYTRA_LANES 4
#define CYTRA_TARGET
namespace cytra::ops::cpu::classes_baseline {
#include "ops/dice_ce_kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#if defined(__x86_64__)
#define CYTRA_LANES 8
#define CYTRA_TARGET __attribute__((target("avx2,fma")))
namespace cytra::ops::cpu::classes_avx2 {
#include "ops/dice_ce_kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#define CYTRA_LANES 16
#define CYTRA_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
namespace cytra::ops::cpu::classes_avx512 {
#include "ops/dice_ce_kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET
#endif

namespace cytra::ops::cpu {

const ClassKernels& class_kernels() {
  static const ClassKernels& chosen = []() -> const ClassKernels& {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability.rfind("AVX512", 0) == 0) return classes_avx512::kClassTable;
    if (capability == "AVX2") return classes_avx2::kClassTable;
#endif
    return classes_baseline::kClassTable;
  }();
  return chosen;
}

}  // namespace cytra::ops::cpu
