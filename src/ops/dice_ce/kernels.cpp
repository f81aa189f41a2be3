#include "ops/dice_ce/kernels.h"

#include <cstring>
#include <string>
#include <type_traits>

#include <ATen/Version.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Once per instruction set: the build has no -march (ops/norm/kernels.cpp).
#define CYTRA_LANES 4
#define CYTRA_TARGET
namespace cytra::ops::cpu::classes_baseline {
#include "ops/dice_ce/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#if defined(__x86_64__)
#define CYTRA_LANES 8
#define CYTRA_TARGET __attribute__((target("avx2,fma,f16c")))
namespace cytra::ops::cpu::classes_avx2 {
#include "ops/dice_ce/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#define CYTRA_LANES 16
#define CYTRA_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
namespace cytra::ops::cpu::classes_avx512 {
#include "ops/dice_ce/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET
#endif

namespace cytra::ops::cpu {

template <class T>
const ClassKernels<T>& class_kernels() {
  static const ClassKernels<T>& chosen = []() -> const ClassKernels<T>& {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability.rfind("AVX512", 0) == 0) return classes_avx512::kClassTable<T>;
    if (capability == "AVX2") return classes_avx2::kClassTable<T>;
#endif
    return classes_baseline::kClassTable<T>;
  }();
  return chosen;
}

template const ClassKernels<float>& class_kernels();
template const ClassKernels<Bfloat16>& class_kernels();
template const ClassKernels<Float16>& class_kernels();

}  // namespace cytra::ops::cpu
