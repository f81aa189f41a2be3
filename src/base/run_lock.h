#pragma once
// Shows whether a process works in a run's folder, on this machine or another.
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cytra {

/// The lock `folder`/.lock: held by flock as long as this lives, with a line that names the
/// holder. Where a disk is shared without locks, the file's time of change, which is set every 10
/// s, shows that it is held.
class [[nodiscard]] RunLock {
 public:
  /// Takes the lock. Throws: ConfigError that names the holder; what AtomicFile throws.
  explicit RunLock(const std::string& folder);
  /// Removes the file.
  ~RunLock();

 private:
  void beat();
  std::string path_;
  int descriptor_ = -1;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool is_ending_ = false;
  std::thread thread_;
};

/// The holder of the lock of `folder`: "process 12 on node3, since 2026-01-31 12:00:00"; "" for
/// nobody. Where another machine's lock is not visible here, it waits until the file has not
/// changed for `patience_s`.
std::string holder_of(const std::string& folder, double patience_s = 35);

}  // namespace cytra
