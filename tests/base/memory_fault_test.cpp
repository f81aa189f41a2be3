#include "base/memory_fault.h"

#include <csignal>
#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/control_groups.h"

namespace cytra {
namespace {

constexpr rlim_t kMegabyte = 1 << 20;

/// How `work` ends in a process that may take so much more: its exit code, or 128 + its signal.
int end_within(rlim_t megabytes, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto used_kb = number_in_file("/proc/self/status", "VmData:").value_or(0);
    const rlim_t most = static_cast<rlim_t>(used_kb) * 1024 + megabytes * kMegabyte;
    const rlimit limit{most, most};
    if (megabytes > 0 && ::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(99);
    explain_memory_faults();
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void write_to(std::uintptr_t where) {
  const volatile std::uintptr_t address = where;  // which the compiler must not look at
  *reinterpret_cast<volatile int*>(address) = 1;
}
/// As code that does not look whether it got memory.
void take(std::size_t bytes) {
  void* const pages =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  write_to(pages == MAP_FAILED ? 64 : reinterpret_cast<std::uintptr_t>(pages));
}

TEST(MemoryFault, OfALibraryThatGotNoMemoryIsExitCodeFive) {
  EXPECT_EQ(end_within(200, [] { take(400 * kMegabyte); }), 5);
  EXPECT_EQ(end_within(50, [] { write_to(std::uintptr_t{1} << 40); }), 5) << "all is taken";
  EXPECT_EQ(end_within(200, [] { take(100 * kMegabyte); }), 0);
}

/// As libgomp without memory for a thread.
TEST(MemoryFault, OfALibraryThatEndsTheProgramIsExitCodeFive) {
  EXPECT_EQ(end_within(8, [] { std::exit(1); }), 5);
  EXPECT_EQ(end_within(200, [] { std::exit(1); }), 1) << "there was memory";
  EXPECT_EQ(end_within(8, [] { std::exit(2); }), 2) << "the program's own end";
  EXPECT_EQ(end_within(0, [] { std::exit(1); }), 1) << "no limit";
}

TEST(MemoryFault, AnyOtherEndsTheProgramAsBefore) {
  constexpr int kFault = 128 + SIGSEGV;
  EXPECT_EQ(end_within(8000, [] { write_to(64); }), kFault) << "there was memory";
  EXPECT_EQ(end_within(200, [] { write_to(std::uintptr_t{1} << 40); }), kFault);
  EXPECT_EQ(end_within(0, [] { write_to(64); }), kFault) << "no limit";
  EXPECT_EQ(end_within(8000, [] { ::raise(SIGSEGV); }), kFault);
}

}  // namespace
}  // namespace cytra
