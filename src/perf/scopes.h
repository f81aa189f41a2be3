#pragma once
#include <cstdint>

namespace cytra::perf {

/// Follows what this thread runs: the scopes that code marks by RECORD_USER_SCOPE ("forward",
/// "optimizer", ...; without a listener one costs some ns) and, where asked, torch's operations.
struct ScopeListener {
  virtual ~ScopeListener() = default;
  virtual void begin(const char* name) = 0;
  /// Of the newest scope that is open. One that was open before listening began is never told.
  virtual void end() = 0;
};

/// While this lives, `listener` is told. One at a time in a thread.
class Listening {
 public:
  Listening(ScopeListener& listener, bool to_operations);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  uint64_t handle_;
};

/// While this lives, torch's own log shows errors alone: it warns of every block that was allocated
/// before memory is watched.
class QuietLog {
 public:
  QuietLog();
  ~QuietLog();
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  int before_;
};

}  // namespace cytra::perf
