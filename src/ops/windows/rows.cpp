#include "ops/windows/rows.h"

#include <cstring>
#include <string>

#include <ATen/Version.h>

// Compiled once per instruction set, as norm_kernels.cpp is.
#define CYTRA_LANES 4
#define CYTRA_TARGET
#define CYTRA_VOXEL __attribute__((always_inline)) inline
namespace cytra::ops::cpu::rows_baseline {
#include "ops/windows/rows.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET
#undef CYTRA_VOXEL

#if defined(__x86_64__)
#define CYTRA_LANES 8
#define CYTRA_TARGET __attribute__((target("avx2,fma")))
#define CYTRA_VOXEL CYTRA_TARGET __attribute__((always_inline)) inline
namespace cytra::ops::cpu::rows_avx2 {
#include "ops/windows/rows.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET

#define CYTRA_LANES 16
#define CYTRA_TARGET \
  __attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")))
namespace cytra::ops::cpu::rows_avx512 {
#include "ops/windows/rows.inc"
}
#undef CYTRA_LANES
#undef CYTRA_TARGET
#undef CYTRA_VOXEL
#endif

namespace cytra::ops::cpu {

const RowLoops& row_loops() {
  static const RowLoops& chosen = []() -> const RowLoops& {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability.rfind("AVX512", 0) == 0) return rows_avx512::kLoops;
    if (capability == "AVX2") return rows_avx2::kLoops;
#endif
    return rows_baseline::kLoops;
  }();
  return chosen;
}

}  // namespace cytra::ops::cpu
