#pragma once
// Whether somebody is at work in a run's folder, on this machine or another.
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cytra {

/// `folder`/.lock: held by flock as long as this lives, with a line that says by whom. Where a disk
/// is shared without locks, it tells by its time of change, which is set every 10 s.
class RunLock {
 public:
  /// Throws: ConfigError that names the holder; as AtomicFile.
  explicit RunLock(const std::string& folder);
  /// Removes the file.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  void beat();
  std::string path_;
  int descriptor_ = -1;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool is_ending_ = false;
  std::thread thread_;
};

/// Who holds the lock of `folder`: "process 12 on node3, since 2026-01-31 12:00:00"; "" for nobody.
/// Of another machine whose lock is not seen here it waits until the file has not changed for
/// `patience_s`.
std::string holder_of(const std::string& folder, double patience_s = 35);

}  // namespace cytra
