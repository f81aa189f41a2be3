#include "training/checkpoint_writer.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"

namespace cytra::training {

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Snapshot CheckpointWriter::reusable() {
  wait();
  return std::move(done_);
}

void CheckpointWriter::write(Snapshot snapshot,
                             std::vector<std::string> paths,
                             std::vector<std::string> remove) {
  wait();
  {
    const std::lock_guard lock(mutex_);
    job_ = Job{std::move(snapshot), std::move(paths), std::move(remove)};
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

void CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !job_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CheckpointWriter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return job_ || is_ending_; });
    if (!job_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      const std::vector<std::string>& paths = job_->paths;
      write_snapshot(paths.front(), job_->snapshot);
      for (std::size_t p = 1; p < paths.size(); ++p) link_file(paths.front(), paths[p]);
      std::error_code ignored;
      for (const std::string& path : job_->remove) {
        if (std::find(paths.begin(), paths.end(), path) == paths.end())
          std::filesystem::remove(path, ignored);
      }
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    done_ = std::move(job_->snapshot);
    error_ = error;
    job_.reset();
    changed_.notify_all();
  }
}

}  // namespace cytra::training
