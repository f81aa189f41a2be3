#include "config/text/yaml_text.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/escape.h"

namespace cytra::config {
namespace {

/// The bytes of the UTF-8 letter that `text` begins with; 0 where it is broken, or not allowed in a
/// YAML file (by PyYAML's set).
std::size_t printable_letter(std::string_view text) {
  const auto [letter, bytes] = utf8_letter(text);
  const bool is_allowed = letter == '\t' || letter == '\n' || letter == '\r' || letter == 0x85 ||
                          (letter >= 0x20 && letter < 0x7f) ||
                          (letter >= 0xa0 && letter != 0xfffe && letter != 0xffff);
  return is_allowed ? bytes : 0;
}

/// Throws: ConfigError that names the place of the byte `at`.
[[noreturn]] void fail_at(const std::string& text,
                          const std::string& name,
                          std::size_t at,
                          const std::string& what) {
  at = std::min(at, text.size());
  const auto here = text.begin() + static_cast<std::ptrdiff_t>(at);
  const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  throw ConfigError(name + ":" + std::to_string(std::count(text.begin(), here, '\n') + 1) + ":" +
                    std::to_string(at - begin + 1) + ": " + what);
}

}  // namespace

void check_letters(const std::string& text, const std::string& name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = printable_letter(std::string_view(text).substr(at));
    if (size == 0) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned char>(text[at]));
      fail_at(text, name, at, "byte " + std::string(byte) + ", expected printable text in UTF-8");
    }
    const bool begins = at == 0 || text[at - 1] == '\n';
    if (begins && text[at] == '%' && (at > 0 || text.rfind("%YAML 1.", 0) != 0))
      fail_at(text, name, at, "a directive, expected no line that begins with '%'");
    at += size;
  }
}

bool closes(std::string_view text, std::size_t at) {
  int open = 0;
  char quote = '\0';
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++open;
    } else if ((c == ']' || c == '}') && --open == 0) {
      return true;
    }
  }
  return false;
}

bool quote_ends(std::string_view text, std::size_t at) {
  const char quote = text[at];
  while (++at < text.size()) {
    const bool pair = at + 1 < text.size() && text[at + 1] == '\'';  // '' is a quote in '...'
    if (quote == '"' ? text[at] == '\\' : text[at] == '\'' && pair) {
      ++at;
    } else if (text[at] == quote) {
      return true;
    }
  }
  return false;
}

void fail_yaml(const std::string& text,
               const std::string& name,
               const std::string& message,
               std::size_t mark) {
  mark = std::min(mark, text.size());
  const std::size_t begin = mark == 0 ? 0 : text.rfind('\n', mark - 1) + 1;
  const std::size_t indent = std::min(text.find_first_not_of(' ', begin), text.size());
  if (indent < mark && text[indent] == '\t')
    fail_at(text, name, indent, "a tab, expected spaces before the key");
  for (std::size_t at = mark; message.find("flow not found") != std::string::npos && at-- > 0;) {
    if ((text[at] != '[' && text[at] != '{') || closes(text, at)) continue;
    fail_at(text,
            name,
            at,
            std::string("the ") + (text[at] == '[' ? "list" : "map") +
                " that begins here does not end, expected its bracket");
  }
  fail_at(text, name, mark, message + ", expected valid YAML");
}

}  // namespace cytra::config
