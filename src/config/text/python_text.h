#pragma once
// Writes values as Python prints them, which Hydra's users find in their texts.
#include <string>
#include <string_view>

#include "config/node.h"

namespace cytra::config {

/// The text that `${...}` writes into surrounding text, like Python's str(): True, None, 1e-05,
/// text, and for lists and maps [1, 'a'], {'a': 1}. ${...} inside them stays as written.
std::string python_str(const Node& node);
/// The text of a value like Python's repr(), with quotes around text: 'it is', "it's".
std::string python_repr(const Node& node);
std::string python_repr(std::string_view text);

}  // namespace cytra::config
