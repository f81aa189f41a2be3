#pragma once
// Signals that ask a program to end: noted, and acted on where the work stands well.
#include <array>
#include <csignal>
#include <string>

#include "base/error.h"

namespace cytra {

constexpr std::array<int, 4> kEndSignals{SIGTERM, SIGINT, SIGUSR1, SIGHUP};

/// From now on these are only noted; a SIGHUP that is ignored (nohup)
/// stays so. A second SIGINT or SIGTERM ends the process at once, with 128 + its number, unless it
/// is the same within a tenth of a second; what was being written is swept at the next start.
void watch_signals();
/// The first of these signals that came, or 0. A read of memory: cheap enough for every step.
int signal_received();
/// As if `signal` had come: it was sent to another process of the same training.
void note_signal(int signal);
/// What the program ends with: 128 + its number (130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP),
/// and 75 ("temporary failure: start me again", sysexits.h) for SIGUSR1, which schedulers send
/// before they take a machine away.
int signal_exit_code(int signal);

/// Work that a signal broke off, where it waited for something that may never come.
struct Interrupted : Error {
  Interrupted(const std::string& what, int exit_code) : Error(what), code(exit_code) {}
  int code;
};

/// While one lives, break_on_signal() throws in its thread: what is under way can be broken off and
/// made again.
class BreakableWork {
 public:
  explicit BreakableWork(bool may_break = true);
  ~BreakableWork();
  BreakableWork(const BreakableWork&) = delete;
  BreakableWork& operator=(const BreakableWork&) = delete;

 private:
  bool was_breakable_;
};
/// For the midst of work that may take minutes. Throws: Interrupted after a signal.
void break_on_signal();

}  // namespace cytra
