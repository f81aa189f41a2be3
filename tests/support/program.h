#pragma once
#include <cstdio>
#include <string>

#include <sys/wait.h>

#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra::test {

struct Outcome {
  int code;  // exit code, or 128 + signal
  std::string out, err;
};

/// Runs a shell command; `$BIN` is the folder of the programs. One that stands still ends after
/// ten minutes: exit code 124, or 137 where it does not hear SIGTERM.
inline Outcome shell(const std::string& command) {
  const TmpDir dir;
  const std::string script = "export BIN='" CYTRA_BIN_DIR "'\n{ " + command + "\n} >'" +
                             (dir / "out") + "' 2>'" + (dir / "err") + "'";
  const int status = std::system(("timeout -k 10 600 bash -c '" +
                                  [&] {
                                    std::string quoted;
                                    for (const char c : script)
                                      quoted +=
                                          c == '\'' ? std::string("'\\''") : std::string(1, c);
                                    return quoted;
                                  }() +
                                  "'")
                                     .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          read_file(dir / "out"),
          read_file(dir / "err")};
}

}  // namespace cytra::test
