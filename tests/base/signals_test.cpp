#include "base/signals.h"

#include <csignal>
#include <initializer_list>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cytra {
namespace {

constexpr int kPause = -1;

int end_after(std::initializer_list<int> signals) {
  const pid_t child = ::fork();
  if (child == 0) {
    watch_signals();
    for (const int signal : signals)
      if (signal == kPause)
        ::usleep(150'000);
      else
        ::raise(signal);
    ::_exit(signal_exit_code(signal_received()));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Signals, TheSecondThatAsksToEndEndsAtOnce) {
  EXPECT_EQ(end_after({SIGUSR1}), 75);
  EXPECT_EQ(end_after({SIGUSR1, SIGTERM}), 75) << "a scheduler's order: the state is being saved";
  EXPECT_EQ(end_after({SIGUSR1, SIGTERM, kPause, SIGTERM}), 143);
  EXPECT_EQ(end_after({SIGUSR1, SIGTERM, SIGTERM}), 75) << "timeout's: to a process and its group";
  EXPECT_EQ(end_after({SIGUSR1, SIGINT, kPause, SIGINT}), 130);
  EXPECT_EQ(end_after({SIGINT, SIGTERM}), 143);
  EXPECT_EQ(end_after({SIGTERM, SIGUSR1}), 143);
}

TEST(Signals, AClosedTerminalAsksToEndUnlessItIsIgnored) {
  EXPECT_EQ(end_after({SIGHUP}), 129);
  EXPECT_EQ(end_after({SIGHUP, SIGTERM}), 129) << "a shell's order: the state is being saved";
  std::signal(SIGHUP, SIG_IGN);  // nohup
  EXPECT_EQ(end_after({SIGHUP, SIGINT}), 130);
  std::signal(SIGHUP, SIG_DFL);
}

TEST(Signals, ThoseBlockedByAParentAreHeard) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  const pid_t child = ::fork();
  if (child == 0) {
    ::sigprocmask(SIG_BLOCK, &term, nullptr);
    ::raise(SIGTERM);
    watch_signals();
    ::_exit(signal_exit_code(signal_received()));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 143);
}

}  // namespace
}  // namespace cytra
