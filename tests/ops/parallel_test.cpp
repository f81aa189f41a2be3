#include "ops/parallel.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace cytra {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnce) {
  const int threads = at::get_num_threads();
  for (const int n : {1, 2, 5}) {
    at::set_num_threads(n);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      for (const int64_t grain : {0, 1, 3, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
        ops::parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        for (const std::atomic<int>& visit : visits) ASSERT_EQ(visit, 1);
      }
    }
  }
  at::set_num_threads(threads);
}

TEST(ParallelFor, UsesSeveralThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  std::vector<std::thread::id> ids(2);
  ops::parallel_for(2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ids[static_cast<std::size_t>(i)] = std::this_thread::get_id();
    }
  });
  EXPECT_NE(ids[0], ids[1]);
  at::set_num_threads(threads);
}

TEST(ParallelFor, PassesAnExceptionOn) {
  EXPECT_THROW(ops::parallel_for(
                   100, 1, [](int64_t, int64_t) { throw std::runtime_error("from a thread"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace cytra
