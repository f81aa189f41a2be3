#include "base/signals.h"

#include <csignal>
#include <cstdlib>
#include <initializer_list>

namespace cytra {
namespace {

volatile std::sig_atomic_t received = 0, is_ending = 0;

void note(int signal) {
  if (received == 0) received = signal;
  if (signal == SIGUSR1) return;  // a scheduler's SIGTERM follows, while the state is being saved
  if (is_ending != 0) std::_Exit(128 + signal);
  is_ending = 1;
}

}  // namespace

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
}

int signal_received() {
  return received;
}

int signal_exit_code(int signal) {
  return signal == SIGUSR1 ? 75 : 128 + signal;
}

}  // namespace cytra
