#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/lists.h"

namespace cytra {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string trim(std::string_view text);
/// Makes letters of ASCII small, whatever the locale; others stay.
std::string in_small_letters(std::string text);
/// Whether it is a digit of ASCII, whatever the locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
constexpr bool is_control(char c) {
  return (c >= 0 && c < 0x20) || c == 0x7f;
}
/// Makes text from a file fit for a message: at most `most` bytes, control characters as "?".
std::string printable(std::string_view text, std::size_t most = 100);
/// The local time in strftime's `format`.
std::string format_time(const char* format);
/// Formats bytes as "1.2 GB" (powers of 1000), and seconds as "3m 20s".
std::string format_bytes(double bytes);
std::string format_seconds(double seconds);

}  // namespace cytra
