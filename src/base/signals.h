#pragma once
// Signals that ask a program to end. They are noted, and handled where the work can stop safely.
#include <array>
#include <csignal>
#include <string>

#include "base/error.h"

namespace cytra {

constexpr std::array<int, 4> kEndSignals{SIGTERM, SIGINT, SIGUSR1, SIGHUP};

/// Begins to note these signals instead of ending; a SIGHUP that is ignored (nohup) stays ignored.
/// A second SIGINT or SIGTERM ends the process at once, with 128 + its number, unless it is the
/// same within a tenth of a second; half-written files are removed at the next start.
void watch_signals();
/// The first of these signals that came, or 0. A read of memory: cheap enough for every step.
int signal_received();
/// Notes `signal` as if it had come here: another process of the same training got it.
void note_signal(int signal);
/// The exit code after a signal: 128 + its number (130 for SIGINT, 143 for SIGTERM, 129 for
/// SIGHUP), and 75 ("temporary failure: start me again", sysexits.h) for SIGUSR1, which schedulers
/// send before they take a machine away.
int signal_exit_code(int signal);

/// Thrown where a signal interrupts work, such as waiting for something that may never come.
struct Interrupted : Error {
  Interrupted(const std::string& what, int exit_code) : Error(what), code(exit_code) {}
  int code;
};

/// Lets break_on_signal() throw in its thread while it lives: the work under way can be
/// interrupted and repeated.
class BreakableWork {
 public:
  explicit BreakableWork(bool may_break = true);
  ~BreakableWork();
  BreakableWork& operator=(BreakableWork&&) = delete;

 private:
  bool was_breakable_;
};
/// Interrupts work that may take minutes; called in the middle of it. Throws: Interrupted after a
/// signal.
void break_on_signal();

}  // namespace cytra
