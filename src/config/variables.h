#pragma once
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

/// Keys of a composed tree that are the user's own variables rather than mistakes: those some
/// ${...} refers to, those of the primary config's own file, and those added with + or ++ on the
/// command line. Dotted, with every key above: "paths", "paths.images".
std::vector<std::string> variables_of(const Node& root, const std::vector<std::string>& overrides);

}  // namespace cytra::config
