#pragma once
// A process that may open few files.
#include <algorithm>

#include <sys/resource.h>

namespace cytra::test {

/// Limits the numbers of open files to `most` while it lives.
class FewFiles {
 public:
  explicit FewFiles(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit less = before_;
    less.rlim_cur = std::min(most, less.rlim_cur);
    ::setrlimit(RLIMIT_NOFILE, &less);
  }
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

}  // namespace cytra::test
