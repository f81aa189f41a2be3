#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace cytra {

/// How progress is shown in this process. Lightning's progress bars set it.
struct ProgressStyle {
  int64_t refresh_rate = 1;     // units between two drawings on a terminal; 0: no progress is
                                // shown
  double line_interval_s = 10;  // between two lines where stderr is no terminal
  bool leave = false;           // the finished bar stays on the terminal
};
ProgressStyle& progress_style();

/// The content of a line of progress.
struct ProgressLine {
  std::string label;
  int64_t done = 0, total = -1;  // total < 0: unknown
  double rate = 0;               // per second; 0: unknown
  double left_s = -1;            // < 0: unknown
  std::string note;
  /// The line in at most `width` columns: a bar where there is room, and the note cut at its end.
  /// width 0: no bar, and nothing is cut.
  std::string text(std::size_t width) const;
};

/// One line of progress with rate and ETA: redrawn in place on a terminal, a plain line every 10 s
/// otherwise, nothing with --quiet. Goes to stderr. The rate is that of the last 10 s or so, the
/// ETA follows from all units so far.
class Progress {
 public:
  /// Begins the line. total < 0: unknown.
  Progress(std::string label, int64_t total, int64_t start = 0);
  ~Progress();
  /// Shows `done` units. `note` follows the rate, e.g. "loss 0.123".
  void update(int64_t done, const std::string& note = "");
  /// Shows a part of the work that may take long, in place of the line until the next update(). It
  /// begins with done = 0 or 1.
  void show_part(const std::string& label, int64_t done, int64_t total);
  /// Clears the line on a terminal, or leaves it there.
  void finish();

 private:
  using Time = std::chrono::steady_clock::time_point;
  bool is_due(Time now, int64_t done, int64_t total) const;
  void show(Time now, const ProgressLine& line);
  std::string label_;
  int64_t total_, start_, done_, rated_;
  double rate_ = 0;  // a mean that forgets old values
  std::string note_;
  bool terminal_, finished_ = false;
  Time begin_, shown_, rated_at_, part_begin_;
};

/// Shows, while it lives, that work of unknown length goes on: on a terminal a line with its time,
/// redrawn each second; else a plain line every 10 s, as Progress. A Spinner inside another one, or
/// while a Progress is updated, shows nothing.
class Spinner {
 public:
  explicit Spinner(std::string label);
  ~Spinner();

 private:
  void show_while_it_lasts();
  std::string label_;
  bool terminal_, is_over_ = false, is_shown_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace cytra
