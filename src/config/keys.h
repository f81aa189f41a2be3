#pragma once
// Keys of a tree by their dotted paths.
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

/// The key of the tree (or group) that is most like `key`, or "": a sibling, or one with the same
/// end (optimizer.lr -> model.optimizer.lr), similar spelling, or the same last word.
std::string nearest_key(const Node& root,
                        const std::string& key,
                        const std::vector<std::string>& groups);

/// Joins "a.b" and "c" to "a.b.c".
std::string child_path(const std::string& path, const std::string& key);

bool is_missing(const Node& node);  // ???

}  // namespace cytra::config
