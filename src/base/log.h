#pragma once
// Messages for people, on stderr; stdout is for a program's results alone.
#include <string_view>

#include <fmt/format.h>

namespace cytra::log {

enum class Level { error, warn, info, debug };

/// Sets which messages are shown; info by default. --quiet sets warn, -v debug.
void set_level(Level level);
bool shows(Level level);
/// Appends every line (without colour) to this file, too; "" stops that.
void set_file(const std::string& path);
/// True when stderr is a terminal that takes colour (NO_COLOR unset, TERM not dumb).
bool has_colour();
/// Writes one line as a whole. Thread: safe.
void write(Level level, std::string_view line);

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (shows(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (shows(Level::warn)) write(Level::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (shows(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cytra::log
