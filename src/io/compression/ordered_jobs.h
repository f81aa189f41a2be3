#pragma once
// Encodes on several threads and takes the results in order; for the formats only.
#include <deque>
#include <functional>
#include <future>
#include <memory>

#include "base/thread_pool.h"

namespace cytra::io {

/// Runs jobs; their results are taken in order. Thread: one. The destructor waits for jobs that
/// have begun; the others never run.
class OrderedJobs {
 public:
  using Result = std::function<void()>;
  /// Adds a job. `job` runs on any thread, perhaps at the same time as others; the function that
  /// it returns is called on the posting thread, in the order of the jobs. Waits while many are
  /// under way. Throws: what jobs and their results threw; then no job is left.
  void post(std::function<Result()> job);
  /// Waits for all jobs.
  void drain();

 private:
  void take();
  int64_t posted_ = 0;
  std::size_t most_ = 0;
  std::deque<std::future<Result>> pending_;
  std::unique_ptr<ThreadPool> pool_;  // destroyed first
};

}  // namespace cytra::io
