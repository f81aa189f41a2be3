#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "training/checkpoint.h"

namespace cytra::training {

/// Writes checkpoints in a thread of its own: a training waits for the copy only. One at a time;
/// the next waits for the one before.
class CheckpointWriter {
 public:
  CheckpointWriter() = default;
  /// Waits for the write under way; its error is lost, so wait() first.
  ~CheckpointWriter();

  /// The memory of the newest written snapshot, to be used again. Waits as wait() does.
  Snapshot reusable();
  /// Writes once, to the first path; the others become links to the same file (copies where the
  /// file system has no links). If a path occurs several times, the last one counts: last.ckpt,
  /// which several callbacks may ask for, is written after all files that its state names. Then,
  /// when all is on the disk, `remove` is removed, unless it was just written. Warns once when the
  /// disk has no room for three more. `undo`, one for each path: then this write is waited for,
  /// and when it fails that is a warning, and these are called, the last first. Throws: what the
  /// write before threw.
  void write(Snapshot snapshot,
             std::vector<std::string> paths,
             std::vector<std::string> remove,
             const std::vector<std::function<void()>>& undo = {});
  /// Until all is on the disk. Throws: what the write threw, once.
  void wait();

 private:
  struct Job {
    Snapshot snapshot;
    std::vector<std::string> paths, remove;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;
  Snapshot done_;
  std::exception_ptr error_;
  bool is_ending_ = false, has_warned_ = false;
  std::thread thread_;  // started by the first write
};

}  // namespace cytra::training
