#include "base/signals.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace cytra {
namespace {

volatile std::sig_atomic_t received = 0;
std::atomic<int> ending_by{0};
std::atomic<int64_t> ending_since{0};  // ms
thread_local bool is_breakable = false;

/// The time within which a repeated signal counts as the same: timeout(1) and others send it to
/// the process and to its group.
constexpr int64_t kEchoMs = 100;

int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // safe in a handler
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
}

void note(int signal) {
  if (received == 0) received = signal;
  // A scheduler's or a shell's SIGTERM follows, while the state is being saved.
  if (signal == SIGUSR1 || signal == SIGHUP) return;
  const int64_t now = now_ms();
  int64_t since = 0;
  if (ending_since.compare_exchange_strong(since, now)) {
    ending_by = signal;
    return;
  }
  const int by = ending_by;
  if ((by != 0 && by != signal) || now - since > kEchoMs) std::_Exit(128 + signal);
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
  sigprocmask(SIG_UNBLOCK, &ours, nullptr);  // signals that came while a parent had blocked them
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
    throw Interrupted("interrupted in the middle of an image", signal_exit_code(signal));
}

}  // namespace cytra
