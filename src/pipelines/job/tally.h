#pragma once
// The results of a job over many images so far, and its end by a signal.
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

#include "base/signal_watch.h"
#include "cli/program.h"

namespace cytra::pipelines {

/// The end of messages on a run whose tables are made at its end.
inline constexpr char kResumeHint[] = " (--resume goes on, and makes the tables)";

struct Tally {
  std::mutex mutex;  // guards all that follows
  cli::Results results;
  int64_t images = 0, done = 0;       // images: with the frames that are known by now
  int64_t resumed = 0;                // of `done`: were there before
  int code = 0;                       // of the first error
  std::atomic<int64_t> finishing{0};  // images whose files are put in place, to be counted then

  explicit Tally(bool json) : results(json) {}
  /// An image that is left out.
  void leave_out(const std::string& id, const std::exception& error);
  /// A function that counts an input and leaves it out.
  std::function<void(const std::string& id, const std::exception& error)> leaving_out();
  /// Works on an image: what is wrong with it costs it alone. Returns 0, or the code of the error
  /// that it was left out by. Throws: what ends the run, which is any error with `ends_on_error`,
  /// an IoError but of reading, a ConfigError of writing or ahead of the first image that is done.
  enum class Phase { reading, computing, writing };
  int attempt(const std::string& id,
              Phase phase,
              bool ends_on_error,
              const std::function<void()>& work);
  /// Reports the end of a run: "12 of 14 images predicted in 3 s, 2 of them before" in the log,
  /// for `what`: "predicted in 3 s"; then the results, the last one the folder of what was written
  /// ("": nothing). `signal`: the signal that ended it, 0 for none; `hint`: what to do then.
  void conclude(const std::string& folder,
                const std::string& what,
                int signal = 0,
                const std::string& hint = "");
};

/// A SignalWatch that closes the tally first; the program's start (StartOfWork) is over with it.
class EndOnSignal {
 public:
  /// `end`: tells what was done, with the tally locked; called in a thread of its own.
  EndOnSignal(Tally& tally, std::function<void(int signal)> end);

 private:
  SignalWatch watch_;
};

}  // namespace cytra::pipelines
