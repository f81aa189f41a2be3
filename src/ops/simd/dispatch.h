#pragma once
// Kernels that are compiled once per instruction set, so that one program runs on every processor
// of its family (the build has no -march). A family's .cpp names its loops and chooses a table:
//
//   namespace cytra::ops::cpu::norm_loops {
//   #define CYTRA_KERNELS "ops/norm/kernels.inc"
//   #include "ops/simd/per_isa.inc"
//   }
//   ... chosen(norm_loops::baseline::kTable, norm_loops::avx2::kTable, norm_loops::avx512::kTable)
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ops/simd/short_floats.h"

namespace cytra::ops::cpu {

enum class Isa { baseline, avx2, avx512 };

/// The instruction set that ATen chose for this processor (ATEN_CPU_CAPABILITY sets it).
Isa isa();

template <class Table>
const Table& chosen(const Table& baseline, const Table& avx2, const Table& avx512) {
  switch (isa()) {
    case Isa::avx512:
      return avx512;
    case Isa::avx2:
      return avx2;
    default:
      return baseline;
  }
}

}  // namespace cytra::ops::cpu
