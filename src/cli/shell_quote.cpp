#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.h"
#include "cli/program.h"

namespace cytra::cli {
namespace {

/// $'...' of bash, zsh and POSIX.1-2024: what a terminal or a log would not show as it is.
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

std::string shell_quote(const std::string& word) {
  if (escaped(word) != word) return ansi_quote(word);
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`!*?[]{}()<>|&;#~") == std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace cytra::cli
