#include "ops/norm/kernels.h"

#include <algorithm>

#include "ops/simd/dispatch.h"

namespace cytra::ops::cpu {
namespace norm_loops {
#define CYTRA_KERNELS "ops/norm/kernels.inc"
#include "ops/simd/per_isa.inc"
}  // namespace norm_loops

template <class T>
const Kernels<T>& kernels() {
  return chosen(
      norm_loops::baseline::kTable<T>, norm_loops::avx2::kTable<T>, norm_loops::avx512::kTable<T>);
}

template const Kernels<float>& kernels();
template const Kernels<Bfloat16>& kernels();
template const Kernels<Float16>& kernels();

}  // namespace cytra::ops::cpu
