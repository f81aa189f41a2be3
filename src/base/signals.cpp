#include "base/signals.h"

#include <atomic>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "base/foreign_call.h"

namespace cytra {
namespace {

volatile std::sig_atomic_t received = 0, is_ending = 0;
thread_local bool is_breakable = false;

constexpr unsigned kGrace = 5;      // seconds
std::atomic<int> foreign_calls{0};  // that run
std::atomic<unsigned> came_back{0}, came_back_before{0};
std::atomic<bool> is_watched{false}, has_foreign_calls{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

/// Of SIGALRM, once the grace is over.
void end_foreign_call(int) {
  const unsigned now = came_back;
  if (foreign_calls == 0 || now != came_back_before) {
    came_back_before = now;  // the program is on its way to its end; the next call may hang
    alarm(kGrace);
    return;
  }
  constexpr char kText[] = "error: ended: the model did not come back after the signal\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
  std::_Exit(signal_exit_code(received));
}

void note(int signal) {
  if (received == 0) received = signal;
  if (has_foreign_calls && is_ending == 0) {
    came_back_before = came_back.load();
    alarm(kGrace);
  }
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
  is_watched = true;
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

ForeignCall::ForeignCall() noexcept {
  ++foreign_calls;
  if (!is_watched || has_foreign_calls.exchange(true)) return;
  struct sigaction action {};
  action.sa_handler = end_foreign_call;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  if (received != 0) alarm(kGrace);
}

ForeignCall::~ForeignCall() {
  ++came_back;
  --foreign_calls;
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
