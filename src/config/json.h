#pragma once
// What programs write for themselves and read again, of any length: parse_yaml() is for what people
// write, and bounded.
#include <string>

#include "config/node.h"

namespace cytra::config {

/// Reads what to_json() wrote. Throws: DataError (no JSON, nested over 64 deep).
Node parse_json(const std::string& text, const std::string& name);

/// For other programs: as to_json(), with null for numbers that are not finite, for which JSON has
/// no word.
std::string to_plain_json(Node node);

/// The same tree with every text in UTF-8, which JSON and YAML need: a byte that is none (file
/// names may have any) becomes one letter of U+F700 to U+F7FF. from_utf8() takes that back.
Node to_utf8(Node node);
Node from_utf8(Node node);

}  // namespace cytra::config
