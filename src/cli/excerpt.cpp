#include "cli/excerpt.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"

namespace cytra::cli {
namespace {

constexpr std::size_t max_width = 160;

/// A number that ends in ':' at `at`; moves `at` past the colon. 0: there is none.
std::size_t take_number(const std::string& text, std::size_t& at) {
  std::size_t value = 0;
  const char* begin = text.data() + at;
  const auto read = std::from_chars(begin, text.data() + text.size(), value);
  const auto end = static_cast<std::size_t>(read.ptr - text.data());
  if (read.ec != std::errc() || end >= text.size() || text[end] != ':') return 0;
  at = end + 1;
  return value;
}

/// The line, shortened round the place, and below it a caret with the rest of the word.
std::string underlined(std::string line, std::size_t column, const std::string& margin) {
  std::size_t at = std::min(column - 1, line.size());
  if (line.size() > max_width) {
    const std::size_t begin = at > max_width / 2 ? at - max_width / 2 : 0;
    line = line.substr(begin, max_width);
    at -= begin;
  }
  std::string below;
  for (std::size_t i = 0; i < at; ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if ((byte & 0xC0U) != 0x80U) below += line[i] == '\t' ? '\t' : ' ';  // UTF-8: one per letter
  }
  below += '^';
  const std::size_t end = std::min(line.find_first_of(" ,:]}=", at), line.size());
  if (end > at + 1) below.append(end - at - 1, '~');
  return "\n" + margin + line + "\n" + std::string(margin.size(), ' ') + below;
}

std::string excerpt(const std::string& error) {
  static const std::string prefix = "command line '";
  if (error.starts_with(prefix)) {
    const std::size_t end = error.find("':", prefix.size());
    if (end == std::string::npos) return "";
    std::size_t at = end + 2;
    const std::size_t column = take_number(error, at);
    if (column == 0) return "";
    return underlined(error.substr(prefix.size(), end - prefix.size()), column, "    ");
  }
  const std::size_t end = error.find(".yaml:");
  if (end == std::string::npos) return "";
  std::size_t at = end + 6;
  const std::size_t line = take_number(error, at);
  const std::size_t column = line == 0 ? 0 : take_number(error, at);
  if (column == 0) return "";
  try {
    const std::string text = read_file(error.substr(0, end + 5), 4 << 20);
    std::size_t begin = 0;
    for (std::size_t i = 1; i < line; ++i) {
      begin = text.find('\n', begin);
      if (begin == std::string::npos) return "";
      ++begin;
    }
    std::string shown = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
    if (!shown.empty() && shown.back() == '\r') shown.pop_back();
    return underlined(shown, column, fmt::format("{:>5} | ", line));
  } catch (const Error&) {  // the file no longer exists, or the name was none of a file
    return "";
  }
}

}  // namespace

std::string with_source(const std::string& message) {
  std::string text;
  const std::vector<std::string> errors = split(message, '\n');
  for (const std::string& error : errors)
    text += (text.empty() ? "" : "\n") + error + excerpt(error);
  return text;
}

}  // namespace cytra::cli
