#include "ops/norm/kernels.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include <ATen/Version.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The loops are compiled once per instruction set: the build has no -march, so a program runs on
// every processor of its family.
#define CYTRA_LANES 4
#define CYTRA_TARGET
namespace cytra::ops::cpu::baseline {
#include "ops/norm/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#if defined(__x86_64__)
#define CYTRA_LANES 8
#define CYTRA_TARGET __attribute__((target("avx2,fma,f16c")))
namespace cytra::ops::cpu::avx2 {
#include "ops/norm/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#define CYTRA_LANES 16
#define CYTRA_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
namespace cytra::ops::cpu::avx512 {
#include "ops/norm/kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET
#endif

namespace cytra::ops::cpu {

template <class T>
const Kernels<T>& kernels() {
  static const Kernels<T>& chosen = []() -> const Kernels<T>& {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability.rfind("AVX512", 0) == 0) return avx512::kTable<T>;
    if (capability == "AVX2") return avx2::kTable<T>;
#endif
    return baseline::kTable<T>;
  }();
  return chosen;
}

template const Kernels<float>& kernels();
template const Kernels<Bfloat16>& kernels();
template const Kernels<Float16>& kernels();

}  // namespace cytra::ops::cpu
