#include "ops/instance_norm_kernels.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <ATen/Version.h>

// The loops are compiled once per instruction set: the build has no -march, so a program runs on
// every processor of its family.
#define CYTRA_LANES 4
#define CYTRA_TARGET
namespace cytra::ops::cpu::baseline {
#include "ops/instance_norm_kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#if defined(__x86_64__)
#define CYTRA_LANES 8
#define CYTRA_TARGET __attribute__((target("avx2,fma")))
namespace cytra::ops::cpu::avx2 {
#include "ops/instance_norm_kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#define CYTRA_LANES 16
#define CYTRA_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
namespace cytra::ops::cpu::avx512 {
#include "ops/instance_norm_kernels.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET
#endif

namespace cytra::ops::cpu {

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability.rfind("AVX512", 0) == 0) return avx512::kTable;
    if (capability == "AVX2") return avx2::kTable;
#endif
    return baseline::kTable;
  }();
  return chosen;
}

}  // namespace cytra::ops::cpu
