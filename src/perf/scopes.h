#pragma once
// Include only from .cpp files: ATen/record_function.h is heavy.
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <ATen/record_function.h>

#include "base/timers.h"

namespace cytra::perf {

/// Marks a phase of the work, while it lives: for the profilers, for timers, and as an NVTX range
/// where a GPU profiler is attached (nsys). Costs some ns where no profiler or timer is active.
class [[nodiscard]] Scope {
 public:
  explicit Scope(const char* name);
  /// `name()` gives the name; it is called only where a profiler or timer is active.
  template <class Name, class = std::enable_if_t<std::is_invocable_v<const Name&>>>
  explicit Scope(const Name& name) : record_(at::RecordScope::USER_SCOPE) {
    if (is_watched()) begin(std::string(name()).c_str());
  }
  ~Scope();
  Scope& operator=(Scope&&) = delete;

 private:
  bool is_watched() const;
  void begin(const char* name);
  at::RecordFunction record_;
  std::optional<timers::Scope> timed_;
  bool is_range_ = false;
};

/// Follows what this thread runs: scopes and, where asked, torch's operations.
struct ScopeListener {
  virtual ~ScopeListener() = default;
  virtual void begin(const char* name) = 0;
  /// The newest open scope ends. A scope that was open before listening began is not reported.
  virtual void end() = 0;
};

/// Reports the scopes of this thread to `listener` while this lives. One at a time in a thread.
class Listening {
 public:
  Listening(ScopeListener& listener, bool to_operations);
  ~Listening();
  Listening& operator=(Listening&&) = delete;

 private:
  uint64_t handle_;
};

/// Reduces torch's own log to errors while this lives: it warns of every block that was allocated
/// before memory is watched.
class QuietLog {
 public:
  QuietLog();
  ~QuietLog();
  QuietLog& operator=(QuietLog&&) = delete;

 private:
  int before_;
};

}  // namespace cytra::perf
