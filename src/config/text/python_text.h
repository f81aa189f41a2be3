#pragma once
// Values as Python prints them: what Hydra's users find in their texts.
#include <cstdint>
#include <string>
#include <string_view>

#include "config/node.h"

namespace cytra::config {

/// What `${...}` writes into surrounding text, as Python's str(): True, None, 1e-05, text, and for
/// lists and maps [1, 'a'], {'a': 1}. ${...} inside them stays as written.
std::string python_str(const Node& node);
/// The same with quotes round text: 'it is', "it's".
std::string python_repr(const Node& node);
std::string python_repr(std::string_view text);
/// Whole text of Python's int(): blanks round it, a sign, digits with single '_' between; nothing
/// else. False when it is none or over 64 bits.
bool read_python_integer(std::string_view text, int64_t& value);

}  // namespace cytra::config
