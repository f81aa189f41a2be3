#include "pipelines/job/stage_threads.h"

#include <stdexcept>

#include <c10/core/InferenceMode.h>

namespace cytra::pipelines {

StageThreads::~StageThreads() {
  if (!threads_.empty()) fail_(std::make_exception_ptr(std::runtime_error("stopped")));
  join();
}

void StageThreads::take(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
  }
  fail_(error);
}

void StageThreads::run(const std::function<void()>& work) {
  try {
    const c10::InferenceMode inference_mode;
    work();
  } catch (...) {
    take(std::current_exception());
  }
}

void StageThreads::start(std::function<void()> work) {
  try {
    threads_.emplace_back([this, work = std::move(work)] { run(work); });
  } catch (...) {  // no more threads
    take(std::current_exception());
  }
}

bool StageThreads::has_failed() {
  const std::lock_guard lock(mutex_);
  return error_ != nullptr;
}

void StageThreads::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void StageThreads::finish(const std::function<void()>& work) {
  if (!has_failed()) run(work);
  join();
  if (error_) std::rethrow_exception(error_);
}

}  // namespace cytra::pipelines
