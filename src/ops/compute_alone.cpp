#include "ops/compute_alone.h"

#include <ATen/Parallel.h>
#include <omp.h>

namespace cytra::ops {

void compute_alone() {
  // A thread's first loop sets the number of threads for all: the first in this library, and the
  // first in torch's own, which keeps a mark of its own. Either would undo the last line.
  at::internal::lazy_init_num_threads();
  at::get_num_threads();
  omp_set_num_threads(1);
}

}  // namespace cytra::ops
