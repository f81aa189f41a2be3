#pragma once
// Encoding on several threads, with the results taken one after the other; for the formats alone.
#include <deque>
#include <functional>
#include <future>
#include <memory>

#include "base/thread_pool.h"

namespace cytra::io {

/// Thread: one. Jobs that have begun end before it does, the others never run.
class OrderedJobs {
 public:
  using Result = std::function<void()>;
  /// `job` runs on any thread, maybe beside others; what it returns is called on the thread that
  /// posts, in the order of the jobs. Waits while many are under way. Throws: what jobs and their
  /// results threw; then none is left.
  void post(std::function<Result()> job);
  /// Waits for all.
  void drain();

 private:
  void take();
  int64_t posted_ = 0;
  std::size_t most_ = 0;
  std::deque<std::future<Result>> pending_;
  std::unique_ptr<ThreadPool> pool_;  // the first to go
};

}  // namespace cytra::io
