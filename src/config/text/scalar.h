#pragma once
// Finds the type of an unquoted scalar. Sources: PyYAML's YAML 1.1 resolver with OmegaConf's
// changes; Hydra's OverrideLexer.g4.
#include <string>
#include <string_view>

#include "config/node.h"

namespace cytra::config {

/// Sets kind and value of `node` from plain YAML text: yes/no/on/off are booleans, 010 is 8, 1:30
/// is 90, 1e3 is a float, `inf`, dates and `y`/`n` stay text. An integer over 64 bits becomes a
/// float.
void type_yaml_scalar(std::string_view text, Node& node);
/// Sets kind and value of `node` from text after `key=` on the command line: only true/false/null
/// (any case) and decimal numbers have a type; yes, 0x10 and 007 are text.
void type_override_scalar(std::string_view text, Node& node);
/// The size of the decimal number that such text begins with; 0: none.
std::size_t override_number_size(std::string_view text);

/// The digits of a number without the `_` that may separate them: 1_000.
std::string without_underscores(std::string_view text);

/// The text of a number like Python's repr(): the shortest that is read as the same number, always
/// with '.', 'e', inf or nan. YAML writes inf as .inf.
std::string real_text(double value);
/// The text for messages: true, null, 1e-05, text; JSON for lists and maps.
std::string plain_text(const Node& node);
/// Quotes at most 200 characters in '...' on one line, for messages.
std::string quote(std::string_view text);

}  // namespace cytra::config
