#include "base/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/json_log.h"
#include "base/log.h"
#include "base/strings.h"

namespace cytra {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRedraw_s = 0.1;                    // on a terminal
constexpr double kEvent_s = 0.5;                     // as JSON
constexpr double kMemory_s = 10;                     // which the rate covers
constexpr double kFirstStage_s = 0.5, kStage_s = 1;  // on a terminal
constexpr std::size_t kBar = 20, kShortestBar = 8;

/// The columns of the terminal; a longer line would wrap and could not be redrawn.
std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// The line as an object of JSON. `is_part`: of the work that another label counts.
std::string json_of(const ProgressLine& line, bool is_part) {
  std::string object = fmt::format(R"({{"event":"progress","label":{},"done":{},"total":{})",
                                   log::json_quote(escaped(line.label)),
                                   line.done,
                                   line.total < 0 ? "null" : std::to_string(line.total));
  if (line.rate > 0) object += fmt::format(R"(,"per_second":{:.6g})", line.rate);
  if (line.left_s >= 0) object += fmt::format(R"(,"left_s":{:.3f})", line.left_s);
  if (!line.note.empty()) object += R"(,"note":)" + log::json_quote(escaped(line.note));
  if (is_part) object += R"(,"is_part":true)";
  return object + "}";
}

bool draws_on_terminal() {
  return log::has_colour() && !log::is_json();
}

}  // namespace

ProgressStyle& progress_style() {
  static ProgressStyle style;
  return style;
}

std::string ProgressLine::text(std::size_t width) const {
  std::string rest;
  if (total > 0) {
    const double share = static_cast<double>(done) / static_cast<double>(total);
    rest = fmt::format("{}/{} ({:.0f}%)", done, total, 100 * share);
  } else {
    rest = std::to_string(done);
  }
  if (rate > 0)
    rest += rate >= 1 ? fmt::format(" {:.1f} it/s", rate) : fmt::format(" {:.1f} s/it", 1 / rate);
  if (left_s >= 0) rest += " ETA " + format_seconds(left_s);
  if (!note.empty()) rest += "  " + note;
  std::string bar;
  const std::size_t taken = label.size() + rest.size() + 4;  // two spaces, two brackets
  if (total > 0 && width >= taken + kShortestBar) {
    const std::size_t length = std::min(kBar, width - taken);
    const auto all = static_cast<std::size_t>(total);
    const std::size_t filled = length * std::min(static_cast<std::size_t>(done), all) / all;
    bar = "[" + std::string(filled, '=') + std::string(length - filled, ' ') + "] ";
  }
  const std::string line = escaped(label + " " + bar + rest);
  return width == 0 ? line : line.substr(0, width);
}

Progress::Progress(std::string label, int64_t total, int64_t start)
    : label_(std::move(label)),
      total_(total),
      start_(start),
      done_(start),
      rated_(start),
      terminal_(draws_on_terminal()),
      begin_(Clock::now()),
      shown_(terminal_ ? Time() : begin_),  // on a terminal the first line is shown at once
      rated_at_(begin_) {}

Progress::~Progress() {
  finish();
}

bool Progress::is_due(Time now, int64_t done, int64_t total) const {
  const ProgressStyle& style = progress_style();
  if (finished_ || style.refresh_rate == 0 || !log::shows(log::Level::info)) return false;
  const double since = seconds(now - shown_);
  if (log::is_json()) return done == total || since >= kEvent_s;
  if (!terminal_) return since >= style.line_interval_s;
  return done == total || (since >= kRedraw_s && done % style.refresh_rate == 0);
}

void Progress::show(Time now, const ProgressLine& line) {
  const bool is_part = line.label != label_;
  shown_ = now;
  if (log::is_json()) return log::write_json(json_of(line, is_part));
  if (!terminal_) return log::info("{}", line.text(0));
  std::fprintf(stderr, "\r\033[K%s", line.text(terminal_width() - 1).c_str());
  std::fflush(stderr);
}

void Progress::update(int64_t done, const std::string& note) {
  const Time now = Clock::now();
  done_ = done;
  note_ = note;
  if (!is_due(now, done, total_)) return;
  const double elapsed = seconds(now - begin_), since = seconds(now - rated_at_);
  if (since > 0 && elapsed > 0) {  // a mean over all at first, then over the last kMemory_s
    const double share = 1 - std::exp(-since / std::min(kMemory_s, elapsed));
    const double newest = static_cast<double>(done - rated_) / since;
    rate_ = rate_ == 0 ? newest : rate_ + share * (newest - rate_);
  }
  rated_ = done;
  rated_at_ = now;
  ProgressLine line{label_, done, total_, rate_, -1, note};
  if (total_ > done && done > start_)
    line.left_s = static_cast<double>(total_ - done) * elapsed / static_cast<double>(done - start_);
  show(now, line);
}

void Progress::show_part(const std::string& label, int64_t done, int64_t total) {
  const Time now = Clock::now();
  if (done <= 1) part_begin_ = now;
  if (!is_due(now, done, -1)) return;
  const double elapsed = seconds(now - part_begin_);
  ProgressLine line{label, done, total, 0, -1, note_};
  if (elapsed > 0 && done > 1) {
    line.rate = static_cast<double>(done - 1) / elapsed;
    if (total >= done) line.left_s = static_cast<double>(total - done) / line.rate;
  }
  show(now, line);
}

void Progress::finish() {
  if (finished_) return;
  const bool draws = terminal_ && log::shows(log::Level::info) && progress_style().refresh_rate > 0;
  if (draws && progress_style().leave)
    show(Clock::now(), {label_, done_, total_, rate_, -1, note_});
  finished_ = true;
  if (draws) std::fputs(progress_style().leave ? "\n" : "\r\033[K", stderr);
}

Spinner::Spinner(std::string label) : label_(std::move(label)), terminal_(draws_on_terminal()) {
  if (log::shows(log::Level::info) && progress_style().refresh_rate > 0)
    thread_ = std::thread([this] { show_while_it_lasts(); });
}

Spinner::~Spinner() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (is_shown_ && terminal_) std::fputs("\r\033[K", stderr);
}

void Spinner::show_while_it_lasts() {
  const auto begin = Clock::now();
  double next = terminal_ ? kFirstStage_s : progress_style().line_interval_s;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_until(
      lock,
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(next)),
      [this] { return is_over_; })) {
    const std::string line = label_ + " " + format_seconds(seconds(Clock::now() - begin));
    is_shown_ = true;
    next += terminal_ ? kStage_s : progress_style().line_interval_s;
    if (!terminal_) {
      log::info("{}", line);
      continue;
    }
    std::fprintf(stderr, "\r\033[K%s", escaped(line).substr(0, terminal_width() - 1).c_str());
    std::fflush(stderr);
  }
}

}  // namespace cytra
