#include "base/progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"

namespace cytra {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};  // on a terminal
constexpr std::chrono::seconds kPlainLine{10};     // in a file

/// Columns of the terminal; a longer line would wrap and could not be redrawn.
std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Progress::Progress(std::string label, int64_t total, int64_t start)
    : label_(std::move(label)),
      total_(total),
      start_(start),
      done_(start),
      terminal_(log::has_colour()),
      begin_(std::chrono::steady_clock::now()),
      shown_(begin_) {}

Progress::~Progress() {
  finish();
}

std::string Progress::line(int64_t done, const std::string& note) const {
  const double elapsed = seconds(std::chrono::steady_clock::now() - begin_);
  const double rate = elapsed > 0 ? static_cast<double>(done - start_) / elapsed : 0;
  std::string text = label_ + " ";
  if (total_ > 0) {
    if (terminal_) {
      const auto filled = static_cast<std::size_t>(20 * done / total_);
      text += "[" + std::string(filled, '=') + std::string(20 - filled, ' ') + "] ";
    }
    text += fmt::format("{}/{} ({:.0f}%)",
                        done,
                        total_,
                        100.0 * static_cast<double>(done) / static_cast<double>(total_));
  } else {
    text += fmt::format("{}", done);
  }
  text += rate >= 1 || rate == 0 ? fmt::format(" {:.1f} it/s", rate)
                                 : fmt::format(" {:.1f} s/it", 1 / rate);
  if (total_ > done && rate > 0)
    text += " ETA " + format_seconds(static_cast<double>(total_ - done) / rate);
  return note.empty() ? text : text + "  " + note;
}

void Progress::update(int64_t done, const std::string& note) {
  const auto now = std::chrono::steady_clock::now();
  done_ = done;
  note_ = note;
  if (!log::shows(log::Level::info)) return;
  if (terminal_ && (now - shown_ >= kRedraw || done == total_)) {
    shown_ = now;
    std::fprintf(stderr, "\r\033[K%s", line(done, note).substr(0, terminal_width() - 1).c_str());
    std::fflush(stderr);
  } else if (!terminal_ && now - shown_ >= kPlainLine) {
    shown_ = now;
    log::info("{}", line(done, note));
  }
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (terminal_ && log::shows(log::Level::info)) std::fputs("\r\033[K", stderr);
}

}  // namespace cytra
