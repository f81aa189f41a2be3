#include "base/signals.h"

#include <cstdlib>
#include <utility>

namespace cytra {
namespace {

volatile std::sig_atomic_t received = 0, is_ending = 0;
thread_local bool is_breakable = false;

void note(int signal) {
  if (received == 0) received = signal;
  // A scheduler's or a shell's SIGTERM follows, while the state is being saved.
  if (signal == SIGUSR1 || signal == SIGHUP) return;
  if (is_ending != 0) std::_Exit(128 + signal);
  is_ending = 1;
}

}  // namespace

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : kEndSignals) {
    sigaddset(&ours, signal);
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (signal != SIGHUP || before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  sigprocmask(SIG_UNBLOCK, &ours, nullptr);  // what came while a parent had them blocked
}

int signal_received() {
  return received;
}

void note_signal(int signal) {
  if (received == 0) received = signal;
}

int signal_exit_code(int signal) {
  return signal == SIGUSR1 ? 75 : 128 + signal;
}

BreakableWork::BreakableWork(bool may_break)
    : was_breakable_(std::exchange(is_breakable, may_break)) {}

BreakableWork::~BreakableWork() {
  is_breakable = was_breakable_;
}

void break_on_signal() {
  const int signal = received;
  if (is_breakable && signal != 0)
    throw Interrupted("interrupted in the midst of an image", signal_exit_code(signal));
}

}  // namespace cytra
