#pragma once
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cytra::pipelines {

/// The threads of a chain of stages, which pass work on through queues. The first error in one of
/// them ends all.
class StageThreads {
 public:
  /// `fail` wakes every stage that waits for another one, as Queue::fail() does; it is called by
  /// the thread that failed, once for each that does.
  using Fail = std::function<void(const std::exception_ptr& error)>;
  explicit StageThreads(Fail fail) : fail_(std::move(fail)) {}
  /// Ends threads that nobody waited for.
  ~StageThreads();
  /// Starts `work` in a thread of its own, under InferenceMode. A thread that can't be started is
  /// an error of the chain.
  void start(std::function<void()> work);
  /// Runs `work` in this thread, unless another has failed by now; then waits for the others.
  /// Throws: the first error of all.
  void finish(const std::function<void()>& work);

 private:
  void run(const std::function<void()>& work);
  void take(const std::exception_ptr& error);
  bool has_failed();
  void join();
  const Fail fail_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_: the first
};

}  // namespace cytra::pipelines
