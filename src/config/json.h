#pragma once
// JSON that programs write for themselves and read again, of any length. (parse_yaml() is for
// files that people write, and has limits.)
#include <string>

#include "config/node.h"

namespace cytra::config {

/// Reads what to_json() wrote. Throws: DataError (no JSON, or nested more than 64 deep).
Node parse_json(const std::string& text, const std::string& name);

/// Writes JSON for other programs: like to_json(), but with null for numbers that are not finite,
/// which JSON does not have.
std::string to_plain_json(Node node);

/// Makes every text of the tree UTF-8, which JSON and YAML need: a byte that is not valid there
/// (file names may have any) becomes one letter of U+F700 to U+F7FF. from_utf8() reverses that.
Node to_utf8(Node node);
Node from_utf8(Node node);

}  // namespace cytra::config
