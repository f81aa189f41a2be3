#pragma once
#include <cstddef>
#include <functional>
#include <memory>

namespace cytra {

/// Worker threads that run posted jobs in order of posting. A job must not throw.
class ThreadPool {
 public:
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();  // drops the jobs that have not begun, waits for those that have
  void post(std::function<void()> job);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cytra
