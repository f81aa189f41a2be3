#pragma once
// An end by a signal that does not wait for the work under way.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace cytra {

/// While it lives, the first signal (base/signals.h) ends the program within a moment, whatever
/// it is doing. Nothing half-written is left. Needs watch_signals().
class SignalWatch {
 public:
  /// `end`: what is told and undone before, in a thread of its own. `is_finishing`: something is
  /// being put in place, which has a second to be; none: never.
  explicit SignalWatch(std::function<void(int signal)> end,
                       std::function<bool()> is_finishing = {});
  /// Where the end has begun, this waits for it.
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  /// As the destructor, earlier.
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

/// A program's time until its first result, as a SignalWatch: reading data, a first validation, a
/// first step have nothing that is worth keeping. One at a time.
class StartOfWork {
 public:
  /// `what`: that ends the start: "the first step".
  explicit StartOfWork(const std::string& what);
  ~StartOfWork();
  StartOfWork(const StartOfWork&) = delete;
  StartOfWork& operator=(const StartOfWork&) = delete;

 private:
  SignalWatch watch_;
};
/// The folder that `make` makes is removed where a signal ends the start, which waits meanwhile.
/// Returns its name.
std::string make_with_start(const std::function<std::string()>& make);
/// From here on there is something to keep, and the work acts on signals by itself. Does not return
/// where one came before. A read of memory where it is known: cheap enough for every step.
void start_is_over();

}  // namespace cytra
