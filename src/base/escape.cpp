#include "base/escape.h"

#include <algorithm>

#include <fmt/format.h>

namespace cytra {
namespace {

std::string escape(std::string_view text, bool keeps_lines) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto [code, bytes] = utf8_letter(text);
    const bool is_mark = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                         code == 0x200e || code == 0x200f;
    if (bytes == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (is_mark) {
      shown += fmt::format("\\u{:04x}", code);
    } else if (keeps_lines && (code == '\n' || code == '\t')) {
      shown += static_cast<char>(code);
    } else if (code == '\n' || code == '\t' || code == '\r') {
      shown += code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r";
    } else if (code < ' ' || (code >= 0x7f && code < 0xa0)) {
      shown += fmt::format("\\x{:02x}", code);
    } else {
      shown += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return shown;
}

/// Quotes a word by $'...' of bash, zsh and POSIX.1-2024, for characters that a terminal or a log
/// would not show.
std::string ansi_quote(const std::string& word) {
  std::string quoted = "$'";
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t bytes =
        std::max<std::size_t>(utf8_letter(std::string_view(word).substr(at)).bytes, 1);
    const std::string letter = word.substr(at, bytes);
    at += bytes;
    if (letter == "'" || letter == "\\") {
      quoted += "\\" + letter;
    } else if (escaped(letter) == letter) {
      quoted += letter;
    } else {
      for (const char byte : letter)
        quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return quoted + "'";
}

}  // namespace

Utf8Letter utf8_letter(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first < 0xc2   ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  uint32_t code = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[bytes] || is_surrogate || code > 0x10ffff ? Utf8Letter{}
                                                                 : Utf8Letter{code, bytes};
}

std::string escaped(std::string_view text) {
  return escape(text, false);
}

void append_utf8(uint32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (unsigned left = more; left-- > 0;)
    text += static_cast<char>(0x80U | (code >> (6 * left) & 0x3FU));
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = utf8_letter(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string escaped_lines(std::string_view text) {
  return escape(text, true);
}

std::string escaped_html(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += letter;
    }
  }
  return safe;
}

std::string shell_quote(const std::string& word) {
  if (escaped(word) != word) return ansi_quote(word);
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`!*?[]{}()<>|&;#~") == std::string::npos)
    return word;
  if (word.find('\'') != std::string::npos && word.find_first_of("\"\\$`!") == std::string::npos)
    return "\"" + word + "\"";
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace cytra
