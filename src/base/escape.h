#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cytra {

/// Escapes foreign text (a file's name, a header's words) for a terminal, a log or a line of
/// results: control characters and bytes that are no UTF-8 become \n, \t, \x1b, and marks that
/// change the direction of writing or end a line become \u202e; all other letters are kept.
std::string escaped(std::string_view text);
/// Escapes a message of several lines; line ends and tabs are kept.
std::string escaped_lines(std::string_view text);
/// Escapes `text` for use between tags or in quotes of HTML and XML.
std::string escaped_html(std::string_view text);
/// Quotes a word for a shell where needed.
std::string shell_quote(const std::string& word);

struct Utf8Letter {
  uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};
/// The first letter of a text that is not empty. By RFC 3629 forms longer than needed, surrogates
/// and numbers above U+10FFFF are not valid.
Utf8Letter utf8_letter(std::string_view text);
/// Appends the letter `code`, at most U+10FFFF, to `text`.
void append_utf8(uint32_t code, std::string& text);
/// Whether the text is valid UTF-8, which JSON and most readers need.
bool is_utf8(std::string_view text);

}  // namespace cytra
