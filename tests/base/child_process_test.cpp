#include "base/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

ChildOptions shell_child(const std::string& script) {
  ChildOptions options;
  options.program = "/bin/sh";
  options.arguments = {"sh", "-c", script};
  return options;
}

ChildEnd wait_for(pid_t child) {
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  return end_of(child).value_or(ChildEnd{-1, -1});
}

ChildEnd run(const ChildOptions& options) {
  return wait_for(start_child(options));
}

TEST(ChildProcess, TellsHowItEnded) {
  EXPECT_EQ(run(shell_child("exit 0")).exit_code, 0);
  EXPECT_EQ(run(shell_child("exit 3")).text(), "ended with exit code 3");
  const ChildEnd killed = run(shell_child("kill -9 $$"));
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.text(), "ended by signal 9 (Killed)");
}

TEST(ChildProcess, AnEndIsToldOnceAndNotBefore) {
  const pid_t child = start_child(shell_child("exec sleep 30"));
  EXPECT_FALSE(end_of(child));
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child).exit_code, 143);
  EXPECT_FALSE(end_of(child));
}

TEST(ChildProcess, HasFilesAndVariablesOfItsOwn) {
  const test::TmpDir dir;
  ChildOptions options = shell_child("cat; echo \"$WORD and $HOME\"; echo message >&2");
  options.environment = {"WORD=a word"};
  options.out = ::open((dir / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  options.err = ::open((dir / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(run(options).exit_code, 0);  // cat ends: nothing comes from stdin
  EXPECT_EQ(read_file(dir / "out"), "a word and \n");
  EXPECT_EQ(read_file(dir / "err"), "message\n");
  ::setenv("CYTRA_TEST_WORD", "inherited", 1);
  options.arguments.back() = "echo $CYTRA_TEST_WORD";
  options.environment.clear();
  EXPECT_EQ(run(options).exit_code, 0);
  EXPECT_EQ(read_file(dir / "out"), "a word and \ninherited\n");
  ::unsetenv("CYTRA_TEST_WORD");
  ::close(options.out);
  ::close(options.err);
}

TEST(ChildProcess, SignalsWaitWhereAsked) {
  // SIGTERM would end it before it writes; the shell itself never unblocks a signal.
  ChildOptions options = shell_child("kill -TERM $$; exit 5");
  EXPECT_EQ(run(options).signal, SIGTERM);
  ::sigaddset(&options.blocked, SIGTERM);
  EXPECT_EQ(run(options).exit_code, 5);
  std::signal(SIGINT, SIG_IGN);  // as a shell does with `program &`
  EXPECT_EQ(run(shell_child("kill -INT $$; exit 5")).signal, SIGINT);
  std::signal(SIGINT, SIG_DFL);
}

TEST(ChildProcess, MayHaveAGroupOfItsOwn) {
  ChildOptions options = shell_child("exec sleep 30");
  const pid_t with_us = start_child(options);
  EXPECT_EQ(::getpgid(with_us), ::getpgrp());
  options.has_own_group = true;
  const pid_t alone = start_child(options);
  EXPECT_EQ(::getpgid(alone), alone);
  for (const pid_t child : {with_us, alone}) {
    ::kill(child, SIGKILL);
    wait_for(child);
  }
}

TEST(ChildProcess, SaysWhatCantBeExecuted) {
  const test::TmpDir dir;
  ChildOptions options = shell_child("");
  options.program = "/no/such/program";
  options.err = ::open((dir / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(run(options).exit_code, 4);
  EXPECT_EQ(read_file(dir / "err"),
            "error: can't start /no/such/program: No such file or directory\n");
  ::close(options.err);
}

TEST(ChildProcess, EndsWithTheOneThatStartedIt) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what its parent leaves becomes a child of this process
  int numbers[2];
  ASSERT_EQ(::pipe(numbers), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ChildOptions options = shell_child("exec sleep 30");
    options.death_signal = SIGKILL;
    const pid_t child = start_child(options);
    const bool is_told = ::write(numbers[1], &child, sizeof child) == sizeof child;
    ::usleep(100'000);  // until it is a shell
    ::_exit(is_told ? 0 : 1);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(numbers[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  EXPECT_EQ(wait_for(parent).exit_code, 0);
  EXPECT_EQ(wait_for(child).exit_code, 137);
  for (const int file : numbers) ::close(file);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace cytra
