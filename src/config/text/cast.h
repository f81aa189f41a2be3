#pragma once
// Casts as Python's int(), float(), str() and bool() do them.
#include <string>

#include "config/node.h"

namespace cytra::config {

bool is_number(const Node& node);     // also true and false, as in Python
double number_of(const Node& node);   // the number of such a node
std::string shown(const Node& node);  // for messages: quoted, not too long
/// Reads text that Python's int() accepts: blanks around it, a sign, digits with single '_'
/// between. Returns false when it is no such text, or over 64 bits.
bool read_python_integer(std::string_view text, int64_t& value);
/// Converts the node to another kind, lists and maps item by item. Throws: std::invalid_argument.
Node cast(const Node& node, Kind kind);

}  // namespace cytra::config
