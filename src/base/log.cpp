#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include <unistd.h>

#include "base/strings.h"

namespace cytra::log {
namespace {

std::atomic<Level> shown{Level::info};
std::mutex mutex;
std::FILE* file = nullptr;

const char* prefix(Level level) {
  return level == Level::error ? "error: " : level == Level::warn ? "warning: " : "";
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
  const std::lock_guard lock(mutex);
  if (file != nullptr) std::fclose(file);
  file = path.empty() ? nullptr : std::fopen(path.c_str(), "ae");
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
  if (file != nullptr) {
    std::fprintf(file,
                 "%s %s%.*s\n",
                 format_time("%Y-%m-%d %H:%M:%S").c_str(),
                 prefix(level),
                 static_cast<int>(line.size()),
                 line.data());
    std::fflush(file);
  }
  if (!shows(level)) return;
  const bool coloured = has_colour() && *colour(level) != 0;
  std::string text;
  if (has_colour()) text += "\r\033[K";  // a progress line may stand there
  text += coloured ? colour(level) : "";
  text += prefix(level);
  text += coloured ? "\033[0m" : "";
  text += line;
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace cytra::log
