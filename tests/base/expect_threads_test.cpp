#include "base/expect_threads.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

TEST(ExpectThreads, MoreThanAnyMachineHasAreRefused) {  // libgomp crossed its stack
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    for (const char* count : {"100000", "99999999999999999999", "5000,2"}) {
      ::setenv(name, count, 1);
      EXPECT_NE(message_of<ConfigError>(expect_threads).find(name), std::string::npos) << count;
    }
    for (const char* count : {"2", "4,2", "", "none"}) {
      ::setenv(name, count, 1);
      expect_threads();
    }
    ::unsetenv(name);
  }
}

TEST(ExpectThreads, ALimitIsAnErrorOfTheSystem) {  // libgomp ended the process
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit one{1, 1};
    if (::setuid(54321) != 0 || ::setrlimit(RLIMIT_NPROC, &one) != 0) ::_exit(77);
    try {
      expect_threads();
    } catch (const IoError&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs root";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace cytra
