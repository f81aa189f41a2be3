#include "base/signals.h"

#include <csignal>
#include <initializer_list>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cytra {
namespace {

int end_after(std::initializer_list<int> signals) {
  const pid_t child = ::fork();
  if (child == 0) {
    watch_signals();
    for (const int signal : signals) ::raise(signal);
    ::_exit(signal_exit_code(signal_received()));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Signals, TheSecondThatAsksToEndEndsAtOnce) {
  EXPECT_EQ(end_after({SIGUSR1}), 75);
  EXPECT_EQ(end_after({SIGUSR1, SIGTERM}), 75) << "a scheduler's order: the state is being saved";
  EXPECT_EQ(end_after({SIGUSR1, SIGTERM, SIGTERM}), 143);
  EXPECT_EQ(end_after({SIGINT, SIGINT}), 130);
  EXPECT_EQ(end_after({SIGINT, SIGTERM}), 143);
  EXPECT_EQ(end_after({SIGTERM, SIGUSR1}), 143);
}

}  // namespace
}  // namespace cytra
