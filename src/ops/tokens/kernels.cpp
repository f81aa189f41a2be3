#include "ops/tokens/kernels.h"

#include <cmath>
#include <utility>

#include "ops/simd/dispatch.h"

namespace cytra::ops::cpu {
namespace token_loops {
#define CYTRA_KERNELS "ops/tokens/kernels.inc"
#include "ops/simd/per_isa.inc"
}  // namespace token_loops

const TokenKernels& token_kernels() {
  return chosen(
      token_loops::baseline::kTable, token_loops::avx2::kTable, token_loops::avx512::kTable);
}

}  // namespace cytra::ops::cpu
