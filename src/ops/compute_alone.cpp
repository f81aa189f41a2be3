#include "ops/compute_alone.h"

#include <ATen/Parallel.h>
#include <omp.h>

namespace cytra::ops {

void compute_alone() {
  // The first loop in a thread sets the number of threads for all, in this library and again in
  // torch's own, which has its own flag. Either would undo the last line, so both are called
  // first.
  at::internal::lazy_init_num_threads();
  at::get_num_threads();
  omp_set_num_threads(1);
}

}  // namespace cytra::ops
