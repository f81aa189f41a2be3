#pragma once
// What is said about the text of a YAML file, beyond what yaml-cpp can tell.
#include <string>
#include <string_view>

namespace cytra::config {

/// Throws: ConfigError at a byte that is no part of printable UTF-8 (the set PyYAML takes), and at
/// a line that begins with '%' but is no %YAML 1.x at the start: yaml-cpp skips it, wherever it is.
void check_letters(const std::string& text, const std::string& name);

/// Does the list or map that opens at `at` end? Its brackets are counted outside of quotes.
bool closes(std::string_view text, std::size_t at);
/// Does the quoted text that begins at `at` end?
bool quote_ends(std::string_view text, std::size_t at);

/// Throws: ConfigError for yaml-cpp's `message` at the byte `mark`, or rather at the tab or the
/// bracket that is to blame: yaml-cpp notices such mistakes lines later.
[[noreturn]] void fail_yaml(const std::string& text,
                            const std::string& name,
                            const std::string& message,
                            std::size_t mark);

}  // namespace cytra::config
