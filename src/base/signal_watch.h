#pragma once
// Ends the program after a signal without waiting for the work under way.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace cytra {

/// Makes the first signal (base/signals.h) end the program at once while it lives, whatever it is
/// doing. Nothing half-written is left. Needs watch_signals().
class [[nodiscard]] SignalWatch {
 public:
  /// Begins to watch. `end`: called before the end, in a thread of its own, to report and undo.
  /// `is_finishing`: whether something is being put in place, which gets a second for it; none:
  /// never.
  explicit SignalWatch(std::function<void(int signal)> end,
                       std::function<bool()> is_finishing = {});
  /// Stops watching; waits for the end where it has begun.
  ~SignalWatch();
  /// Does what the destructor does, earlier.
  void stop();

 private:
  void watch();
  std::function<void(int signal)> end_;
  std::function<bool()> is_finishing_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

/// Removes a folder that another thread may still be filling, before the program ends.
void remove_at_the_end(const std::string& folder);

/// The SignalWatch of a program's time until its first result: reading data, a first validation
/// and a first step make nothing that is worth keeping. One at a time.
class StartOfWork {
 public:
  /// Begins the start. `what` ends it: "the first step".
  explicit StartOfWork(const std::string& what);
  ~StartOfWork();
  StartOfWork& operator=(StartOfWork&&) = delete;

 private:
  SignalWatch watch_;
};
/// Makes a folder by `make`; a signal that ends the start waits for it, and the folder is removed.
/// Returns the folder's name.
std::string make_with_start(const std::function<std::string()>& make);
/// Ends the start: from here on there is something to keep, and the work handles signals by
/// itself. Does not return where a signal came before. Later calls only read memory: cheap enough
/// for every step.
void start_is_over();

}  // namespace cytra
