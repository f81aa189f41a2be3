#pragma once
// Code of others that may never come back, and signals that ask a program to end (base/signals.h).

namespace cytra {

/// While one lives, code of others runs, which may never come back: when none of them ends within
/// five seconds of a signal that watch_signals() notes, the process does, as by a SignalWatch.
/// Thread: safe.
class ForeignCall {
 public:
  ForeignCall();
  ~ForeignCall();
  ForeignCall(const ForeignCall&) = delete;
  ForeignCall& operator=(const ForeignCall&) = delete;
};

}  // namespace cytra
