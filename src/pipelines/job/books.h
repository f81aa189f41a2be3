#pragma once
// What `predict` has done so far, and its end by a signal.
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

#include "base/signal_watch.h"
#include "cli/program.h"

namespace cytra::pipelines {

struct Books {
  std::mutex mutex;  // guards all that follows
  cli::Results results;
  int64_t images = 0, done = 0;       // images: with the frames that are known by now
  int64_t resumed = 0;                // of `done`: were there before
  int code = 0;                       // of the first error
  std::atomic<int64_t> finishing{0};  // images whose files are put in place, to be booked then

  explicit Books(bool json) : results(json) {}
  /// An image that is left out.
  void leave_out(const std::string& id, const std::exception& error);
};

/// A SignalWatch that closes the books first; the program's start (StartOfWork) is over with it.
class EndOnSignal {
 public:
  /// `end`: tells what was done, with the books locked; called in a thread of its own.
  EndOnSignal(Books& books, std::function<void(int signal)> end);

 private:
  SignalWatch watch_;
};

}  // namespace cytra::pipelines
