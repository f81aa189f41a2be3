#include "ops/dice_ce/kernels.h"

#include "ops/simd/dispatch.h"

namespace cytra::ops::cpu {
namespace class_loops {
#define CYTRA_KERNELS "ops/dice_ce/kernels.inc"
#include "ops/simd/per_isa.inc"
}  // namespace class_loops

template <class T>
const ClassKernels<T>& class_kernels() {
  return chosen(class_loops::baseline::kTable<T>,
                class_loops::avx2::kTable<T>,
                class_loops::avx512::kTable<T>);
}

template const ClassKernels<float>& class_kernels();
template const ClassKernels<Bfloat16>& class_kernels();
template const ClassKernels<Float16>& class_kernels();

}  // namespace cytra::ops::cpu
