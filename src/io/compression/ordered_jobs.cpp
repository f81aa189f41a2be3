#include "io/compression/ordered_jobs.h"

#include <algorithm>

#include "base/control_groups.h"

namespace cytra::io {
namespace {

constexpr std::size_t kMostThreads = 8;
constexpr int64_t kAlone = 2;  // a small image is finished before threads have started

}  // namespace

void OrderedJobs::post(std::function<Result()> job) {
  if (++posted_ <= kAlone) return job()();
  if (pool_ == nullptr) {
    const std::size_t cores = static_cast<std::size_t>(available_processors());
    most_ = 2 * std::min(cores, kMostThreads);
    pool_ = std::make_unique<ThreadPool>(std::min(cores, kMostThreads));
  }
  while (pending_.size() >= most_) take();
  const auto task = std::make_shared<std::packaged_task<Result()>>(std::move(job));
  pending_.push_back(task->get_future());
  pool_->post([task] { (*task)(); });
}

void OrderedJobs::drain() {
  while (!pending_.empty()) take();
}

void OrderedJobs::take() {
  std::future<Result> next = std::move(pending_.front());
  pending_.pop_front();
  try {
    next.get()();
  } catch (...) {  // the other jobs may use objects that the caller is about to destroy
    for (const std::future<Result>& other : pending_) other.wait();
    pending_.clear();
    throw;
  }
}

}  // namespace cytra::io
