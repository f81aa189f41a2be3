#pragma once
// Errors a user can meet, each with the exit code its program ends with. Source: docs/errors.md.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace cytra {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// The message of a format, as fmt::format() makes it.
  template <class First, class... Rest>
  Error(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest)
      : std::runtime_error(
            fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)) {}
};
/// A mistake in the user's configuration, command line or paths; exit code 2.
struct ConfigError : Error {
  using Error::Error;
};
/// An input file or a sample that can't be used; exit code 2.
struct DataError : Error {
  using Error::Error;
};
/// A failure of the system during the work (disk full, device error); exit code 4.
struct IoError : Error {
  using Error::Error;
};
/// Host or device memory ran out; exit code 5.
struct MemoryError : Error {
  using Error::Error;
};
/// A training whose loss is not finite; exit code 6.
struct DivergedError : Error {
  using Error::Error;
};

/// The exit code for an exception; anything that is not an Error is a fault of the program: 1.
int exit_code(const std::exception& error) noexcept;

/// The entry of `choices` most like `word` (edit distance at most a third of its length), or "".
std::string nearest(const std::string& word, const std::vector<std::string>& choices);

/// A hint for a message: " Did you mean 'x'?" for the nearest choice, else " Choices: a, b, c."
/// (at most 20 are listed).
std::string suggestion(const std::string& word, const std::vector<std::string>& choices);

/// Throws by errno: IoError for a full disk or a failing device; ConfigError for what the user can
/// correct (a missing path, no permission, read-only). `what` names the action, `path` its object.
[[noreturn]] void throw_errno(const std::string& what, const std::string& path, int error_number);

}  // namespace cytra
