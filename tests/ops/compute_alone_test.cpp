#include "ops/compute_alone.h"

#include <thread>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <omp.h>

namespace cytra::ops {
namespace {

/// Torch's loops have begun by then, which set the number of threads at a thread's first one.
TEST(ComputeAlone, HoldsBeyondTheFirstLoops) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  int seen = 0;
  std::thread([&] {
    compute_alone();
    at::ones({1 << 20}).add_(1);
    at::parallel_for(0, 4, 1, [](int64_t, int64_t) {});
    seen = omp_get_max_threads();
  }).join();
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(at::get_num_threads(), 2);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace cytra::ops
