#pragma once
// Checks the text of a YAML file beyond what yaml-cpp finds.
#include <string>
#include <string_view>

namespace cytra::config {

/// Checks letters and directives. Throws: ConfigError at a byte that is no part of printable UTF-8
/// (the set PyYAML takes), and at a line that begins with '%' but is no %YAML 1.x at the start:
/// yaml-cpp skips it, wherever it is.
void check_letters(const std::string& text, const std::string& name);

/// Whether the list or map that opens at `at` ends. Its brackets are counted outside of quotes.
bool closes(std::string_view text, std::size_t at);
/// Whether the quoted text that begins at `at` ends.
bool quote_ends(std::string_view text, std::size_t at);

/// Throws: ConfigError for yaml-cpp's `message` at the byte `mark`, or at the tab or the bracket
/// that causes it, as yaml-cpp finds such mistakes lines later.
[[noreturn]] void fail_yaml(const std::string& text,
                            const std::string& name,
                            const std::string& message,
                            std::size_t mark);

}  // namespace cytra::config
