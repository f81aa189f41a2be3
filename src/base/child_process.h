#pragma once
// Starts other programs and reports how they ended.
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace cytra {

/// Options of a process that is started. Its stdin is /dev/null.
struct ChildOptions {
  std::string program;                           // path of the file to execute
  std::vector<std::string> arguments;            // argv, the name first
  std::vector<std::string> environment;          // "NAME=value" each; none: this process's own
  int out = STDOUT_FILENO, err = STDERR_FILENO;  // files of this process that it writes to
  sigset_t blocked{};                            // signals that are blocked in it at first
  int death_signal = SIGTERM;                    // the signal sent to it when the thread that
                                                 // started it ends
  bool has_own_group = false;                    // a terminal's Ctrl-C does not reach it
};

/// Starts a process. Where the program can't be executed, the process ends with a message on `err`
/// and exit code 4. Returns the process's number; -1, and errno, when there is no room for
/// another.
pid_t start_child(const ChildOptions& options);

/// How a process ended.
struct ChildEnd {
  int exit_code = 0;  // 128 + N after signal N
  int signal = 0;     // the one that ended it; 0: it ended by itself
  /// The end in words: "ended with exit code 3", "ended by signal 9 (Killed)".
  std::string text() const;
};

/// Returns how `child` ended; none while it runs. An end is returned once.
std::optional<ChildEnd> end_of(pid_t child);

}  // namespace cytra
