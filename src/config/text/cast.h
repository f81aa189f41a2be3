#pragma once
// Casts as Python's int(), float(), str() and bool() do them.
#include <string>

#include "config/node.h"

namespace cytra::config {

bool is_number(const Node& node);     // also true and false, as in Python
double number_of(const Node& node);   // the number of such a node
std::string shown(const Node& node);  // for messages: quoted, not too long
/// Converts the node to another kind, lists and maps item by item. Throws: std::invalid_argument.
Node cast(const Node& node, Kind kind);

}  // namespace cytra::config
