#pragma once
#include <chrono>

namespace cytra {

/// Counts seconds since it was made, or since `begin`, by a clock that is never set.
class Stopwatch {
 public:
  Stopwatch() = default;
  explicit Stopwatch(std::chrono::steady_clock::time_point begin) : begin_(begin) {}
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace cytra
