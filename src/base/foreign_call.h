#pragma once
// Ends the program after a signal (base/signals.h) even where foreign code does not return.

namespace cytra {

/// Marks, while it lives, a call of foreign code that may never return. When no such call ends
/// within five seconds of a signal that watch_signals() notes, the process ends as by a
/// SignalWatch. Thread: safe.
class ForeignCall {
 public:
  ForeignCall();
  ~ForeignCall();
  ForeignCall& operator=(ForeignCall&&) = delete;
};

}  // namespace cytra
