#pragma once
// What `predict` has done so far, and its end by a signal.
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "cli/program.h"

namespace cytra::app {

/// The mutex is held while files are written and booked: who gets it finds nothing half-done.
struct Books {
  std::mutex mutex;
  cli::Results results;
  int64_t images = 0, done = 0;  // images: with the frames that are known by now
  int code = 0;                  // of the first error

  explicit Books(bool json) : results(json) {}
  /// An image that is left out.
  void leave_out(const std::string& id, const std::exception& error);
};

/// Ends the program within a moment of the first signal, whatever it is doing, unless it holds
/// `writing`.
class EndOnSignal {
 public:
  /// `end`: tells what was done; called in a thread of its own.
  EndOnSignal(std::mutex& writing, std::function<void(int signal)> end);
  ~EndOnSignal();
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

 private:
  void watch(std::mutex& writing, const std::function<void(int signal)>& end);
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace cytra::app
