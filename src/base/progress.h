#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace cytra {

/// One line of progress with rate and ETA: redrawn in place on a terminal, a plain line every 10 s
/// otherwise, nothing with --quiet. Goes to stderr.
class Progress {
 public:
  /// total < 0: unknown.
  Progress(std::string label, int64_t total, int64_t start = 0);
  ~Progress();
  /// `note` follows the rate, e.g. "loss 0.123".
  void update(int64_t done, const std::string& note = "");
  /// Clears the line on a terminal; plain output ends with a last line.
  void finish();

 private:
  std::string line(int64_t done, const std::string& note) const;
  std::string label_;
  int64_t total_, start_, done_;
  std::string note_;
  bool terminal_, finished_ = false;
  std::chrono::steady_clock::time_point begin_, shown_;
};

}  // namespace cytra
