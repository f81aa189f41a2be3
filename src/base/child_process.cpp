#include "base/child_process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace cytra {
namespace {

/// Makes a list of pointers as execve() takes it.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Executes the program in the new process. Calls only what is safe after fork().
[[noreturn]] void execute(const ChildOptions& options,
                          char* const* arguments,
                          char* const* environment,
                          pid_t parent) {
  if (options.has_own_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, options.death_signal);
  if (::getppid() != parent) ::_exit(128 + options.death_signal);  // it died before prctl()
  ::dup2(options.out, STDOUT_FILENO);
  ::dup2(options.err, STDERR_FILENO);
  if (const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC); null >= 0)
    ::dup2(null, STDIN_FILENO);
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);  // a shell's & ignores one
  ::sigprocmask(SIG_SETMASK, &options.blocked, nullptr);
  ::execve(options.program.c_str(), arguments, environment);
  const char* reason = std::strerror(errno);
  for (const char* text : {"error: can't start ", options.program.c_str(), ": ", reason, "\n"}) {
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  }
  ::_exit(4);
}

}  // namespace

pid_t start_child(const ChildOptions& options) {
  const std::vector<char*> arguments = pointers_to(options.arguments),
                           environment = pointers_to(options.environment);
  char* const* const variables = options.environment.empty() ? ::environ : environment.data();
  sigset_t all, before;  // else this process's handlers could run in the new one
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) execute(options, arguments.data(), variables, parent);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // The group is set here, too: a signal to the group may come before the child made it.
  if (child > 0 && options.has_own_group) ::setpgid(child, child);
  return child;
}

std::string ChildEnd::text() const {
  return signal == 0 ? fmt::format("ended with exit code {}", exit_code)
                     : fmt::format("ended by signal {} ({})", signal, ::strsignal(signal));
}

std::optional<ChildEnd> end_of(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) != child) return std::nullopt;
  if (WIFSIGNALED(status)) return ChildEnd{128 + WTERMSIG(status), WTERMSIG(status)};
  return ChildEnd{WEXITSTATUS(status), 0};
}

}  // namespace cytra
