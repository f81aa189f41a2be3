#pragma once
// Limits of JSON that strangers send.
#include <string_view>

namespace cytra::config {

/// Why a text would take its reader too long: "is nested too deep" or "has too many names" (in
/// all); "" where it would not. It reads the text once and keeps nothing, while nlohmann's
/// callbacks and ordered maps take time by the square of what they hold.
inline std::string_view json_beyond(std::string_view text,
                                    std::size_t deepest,
                                    std::size_t most_names) {
  std::size_t depth = 0, names = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') is_text = !is_text;
    if (is_text && text[i] == '\\') ++i;
    if (is_text) continue;
    if ((text[i] == '[' || text[i] == '{') && ++depth > deepest) return "is nested too deep";
    if ((text[i] == ']' || text[i] == '}') && depth > 0) --depth;
    if (text[i] == ':' && ++names > most_names) return "has too many names";
  }
  return "";
}

}  // namespace cytra::config
