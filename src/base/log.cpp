#include "base/log.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include <unistd.h>

#include "base/append_file.h"
#include "base/escape.h"
#include "base/json_log.h"
#include "base/strings.h"

namespace cytra::log {
namespace {

std::atomic<Level> shown{Level::info};
std::mutex mutex;
std::FILE* file = nullptr;
bool is_closed = false;  // stderr is a pipe that nobody reads any more

const char* name_of(Level level) {
  constexpr const char* names[] = {"error", "warning", "info", "debug"};
  return names[static_cast<std::size_t>(level)];
}
const char* prefix(Level level) {
  return level == Level::error ? "error: " : level == Level::warn ? "warning: " : "";
}
/// Escapes a message, so that foreign names in it can't look like a message of ours.
std::string fit(Level level, std::string_view line) {
  std::string text = escaped_lines(line);
  if (level != Level::warn) return text;  // other messages hold the user's own words, tables
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) {
    if (at + 1 < text.size() && text[at + 1] != ' ') text.insert(at + 1, "  ");
  }
  return text;
}
const char* colour(Level level) {
  return level == Level::error ? "\033[31m" : level == Level::warn ? "\033[33m" : "";
}

}  // namespace

void set_level(Level level) {
  shown = level;
}
bool shows(Level level) {
  return level <= shown;
}

void set_file(const std::string& path) {
  const int opened = path.empty() ? -1 : open_to_append(path);
  const std::lock_guard lock(mutex);
  if (file != nullptr) std::fclose(file);
  file = opened < 0 ? nullptr : ::fdopen(opened, "a");
}

bool has_colour() {
  static const bool colour = [] {
    const char* no_colour = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return isatty(STDERR_FILENO) != 0 && (no_colour == nullptr || *no_colour == 0) &&
           term != nullptr && std::string(term) != "dumb";
  }();
  return colour;
}

void write(Level level, std::string_view line) {
  const std::lock_guard lock(mutex);
  const std::string fitting = fit(level, line);
  const auto to_file = [](Level at, const std::string& message) {
    if (file == nullptr) return;
    std::fprintf(
        file, "%s %s%s\n", format_time("%Y-%m-%d %H:%M:%S").c_str(), prefix(at), message.c_str());
    std::fflush(file);
  };
  to_file(level, fitting);
  if (!shows(level) || is_closed) return;
  const bool coloured = has_colour() && *colour(level) != 0;
  if (is_json()) {
    return write_json(fmt::format(
        R"({{"event":"message","level":"{}","text":{}}})", name_of(level), json_quote(fitting)));
  }
  std::string text;
  if (has_colour()) text += "\r\033[K";  // a progress line may be there
  text += coloured ? colour(level) : "";
  text += prefix(level);
  text += coloured ? "\033[0m" : "";
  text += fitting;
  text += '\n';
  if (std::fwrite(text.data(), 1, text.size(), stderr) == text.size() || errno != EPIPE) return;
  is_closed = true;
  to_file(Level::warn, "nobody reads stderr any more; messages are only here");
}

}  // namespace cytra::log
