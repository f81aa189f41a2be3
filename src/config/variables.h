#pragma once
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

/// The keys of a composed tree that are the user's own variables rather than mistakes: those that
/// some ${...} refers to, and those of the primary config (`own`: Composition::own_keys). They are
/// dotted, with every key above: "paths", "paths.images".
std::vector<std::string> variables_of(const Node& root, const std::vector<std::string>& own);

/// The dotted keys that each ${...} in `node`, the value of the top-level `key`, refers to.
std::vector<std::string> references_of(const Node& node, const std::string& key);

}  // namespace cytra::config
