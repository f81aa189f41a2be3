#pragma once
// What an unquoted scalar means. Sources: PyYAML's YAML 1.1 resolver with OmegaConf's changes;
// Hydra's OverrideLexer.g4.
#include <string>
#include <string_view>

#include "config/node.h"

namespace cytra::config {

/// Sets kind and value of `node` from plain YAML text: yes/no/on/off are booleans, 010 is 8, 1:30
/// is 90, 1e3 is a float, `inf`, dates and `y`/`n` stay text. An integer over 64 bits becomes a
/// float.
void type_yaml_scalar(std::string_view text, Node& node);
/// The same for text after `key=` on the command line: only true/false/null (any case) and decimal
/// numbers have a type; yes, 0x10 and 007 are text.
void type_override_scalar(std::string_view text, Node& node);

/// The digits of a number without the `_` that may part them: 1_000.
std::string without_underscores(std::string_view text);

/// As Python's repr(): shortest text that reads back, always with '.', 'e', inf or nan. YAML spells
/// the last .inf.
std::string real_text(double value);
/// What messages show: true, null, 1e-05, text; JSON for lists and maps.
std::string plain_text(const Node& node);
/// At most 200 characters in '...' on one line, for messages.
std::string quote(std::string_view text);

}  // namespace cytra::config
