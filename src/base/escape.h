#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cytra {

/// Foreign text (a file's name, a header's words) made fit for a terminal, a log or a line of
/// results: control characters and what is no UTF-8 as \n, \t, \x1b, marks that turn the direction
/// of writing or end a line as \u202e; all other letters as they are.
std::string escaped(std::string_view text);
/// Likewise for a message of several lines: keeps line ends and tabs.
std::string escaped_lines(std::string_view text);
/// `text` between tags or in quotes of HTML and XML.
std::string escaped_html(std::string_view text);
/// "train" quoted for a shell where needed.
std::string shell_quote(const std::string& word);

struct Utf8Letter {
  uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};
/// The first letter of a text that is not empty. RFC 3629: no longer forms than needed, no
/// surrogates, at most U+10FFFF.
Utf8Letter utf8_letter(std::string_view text);
/// `code`, at most U+10FFFF, behind `text`.
void append_utf8(uint32_t code, std::string& text);
/// Whether JSON and most readers would take it.
bool is_utf8(std::string_view text);

}  // namespace cytra
