#include "base/escape.h"

#include <algorithm>

#include <fmt/format.h>
#include <utf8proc.h>

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
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()),
                       &code);
  if (bytes < 1) return {};
  return {static_cast<uint32_t>(code), static_cast<std::size_t>(bytes)};
}

std::string escaped(std::string_view text) {
  return escape(text, false);
}

void append_utf8(uint32_t code, std::string& text) {
  utf8proc_uint8_t letter[4];
  const utf8proc_ssize_t bytes = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), letter);
  text.append(letter, letter + bytes);
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
