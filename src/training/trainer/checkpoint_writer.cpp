#include "training/trainer/checkpoint_writer.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signal_watch.h"
#include "base/strings.h"

namespace cytra::training {
namespace {

/// Warns of a full disk, once, before it ends the training.
void warn_of_space(const std::string& path, const Snapshot& snapshot, bool& has_warned) {
  constexpr double kSaves = 3;
  double bytes = 0;
  for (const auto& [name, tensor] : snapshot.tensors) bytes += static_cast<double>(tensor.nbytes());
  std::error_code error;
  const auto space =
      std::filesystem::space(std::filesystem::absolute(path, error).parent_path(), error);
  if (error || has_warned || static_cast<double>(space.available) >= kSaves * bytes) return;
  has_warned = true;
  log::warn("{}: {} are free on this disk, a checkpoint takes {}; free some space",
            path,
            format_bytes(static_cast<double>(space.available)),
            format_bytes(bytes));
}

}  // namespace

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
                             std::vector<std::string> remove,
                             const std::vector<std::function<void()>>& undo) {
  const bool is_forgiven = undo.size() == paths.size();
  for (auto path = paths.begin(); path != paths.end();) {
    const bool comes_again = std::find(path + 1, paths.end(), *path) != paths.end();
    path = comes_again ? paths.erase(path) : path + 1;
  }
  wait();
  start_is_over();                                                     // there is something to keep
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });  // may throw
  {
    const std::lock_guard lock(mutex_);
    job_ = Job{std::move(snapshot), std::move(paths), std::move(remove)};
  }
  changed_.notify_all();
  if (!is_forgiven) return;
  try {
    wait();
  } catch (const Error& error) {
    log::warn("{}; the training goes on without this checkpoint", error.what());
    for (auto one = undo.rbegin(); one != undo.rend(); ++one) (*one)();
  }
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
      warn_of_space(paths.front(), job_->snapshot, has_warned_);
      write_snapshot(paths.front(), job_->snapshot);
      for (std::size_t p = 1; p < paths.size(); ++p) link_file(paths.front(), paths[p]);
      for (const std::string& path : job_->remove) {
        if (!contains(paths, path)) remove_quietly(path);
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
