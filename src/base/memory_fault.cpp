#include "base/memory_fault.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace cytra {
namespace {

constexpr int kExitCode = 5;
constexpr std::size_t kMuch = std::size_t{1} << 30;     // available: the cause was something else
constexpr std::size_t kLittle = std::size_t{64} << 20;  // not available: this was the cause
constexpr std::size_t kStack = std::size_t{16} << 20;   // not available: no thread starts
constexpr std::uintptr_t kNull = 1 << 16;               // accesses through a null pointer have
                                                        // small addresses

bool is_at_hand(std::size_t bytes) {
  void* const pages =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  ::munmap(pages, bytes);
  return true;
}

/// Handles a fault, calling only the system.
void on_fault(int signal, siginfo_t* info, void* /*context*/) {
  const bool is_of_null = reinterpret_cast<std::uintptr_t>(info->si_addr) < kNull;
  if (!is_at_hand(kMuch) && (is_of_null || !is_at_hand(kLittle))) {
    constexpr std::string_view kText =
        "error: out of memory: a library met the limit of this process (ulimit -d, ulimit -v); "
        "raise it, or try smaller images, patches, data.batch_size or "
        "inference_args.sw_batch_size\n";
    if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) {
    }  // nobody reads it
    ::_exit(kExitCode);
  }
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);     // the fault occurs again, and ends the program
  if (info->si_code <= 0) ::raise(signal);  // another process sent the signal
}

/// Explains the exit of libgomp, which ends the process itself where it gets no thread.
void on_exit_of_library(int status, void* /*argument*/) {
  if (status != 1 || is_at_hand(kStack)) return;
  constexpr std::string_view kText =
      "error: out of memory for one more thread; raise the limit of this process (ulimit -d, "
      "ulimit -v), or lower performance.num_threads\n";
  if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) {
  }  // nobody reads it
  ::_exit(kExitCode);
}

bool has_limit(int resource) {
  rlimit limit{};
  return ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

void explain_memory_faults() {
  if (!has_limit(RLIMIT_DATA) && !has_limit(RLIMIT_AS)) return;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
  ::on_exit(on_exit_of_library, nullptr);
}

}  // namespace cytra
