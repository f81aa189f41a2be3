#pragma once
// Signals that ask a program to end: noted, and acted on where the work stands well.

namespace cytra {

/// From now on SIGINT, SIGTERM and SIGUSR1 are only noted. A second SIGINT or SIGTERM ends the
/// process at once, with 128 + its number; what was being written is swept at the next start.
void watch_signals();
/// The first of these signals that came, or 0. A read of memory: cheap enough for every step.
int signal_received();
/// What the program ends with: 130 for SIGINT, 143 for SIGTERM, and 75 ("temporary failure: start
/// me again", sysexits.h) for SIGUSR1, which schedulers send before they take a machine away.
int signal_exit_code(int signal);

}  // namespace cytra
