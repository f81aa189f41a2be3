#include "ops/simd/dispatch.h"

#include <string>

#include <ATen/Version.h>

namespace cytra::ops::cpu {

Isa isa() {
  static const Isa isa = [] {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability.rfind("AVX512", 0) == 0) return Isa::avx512;
    if (capability == "AVX2") return Isa::avx2;
#endif
    return Isa::baseline;
  }();
  return isa;
}

}  // namespace cytra::ops::cpu
