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

/// Adds the dotted keys below `node`, which is at `path`, each before those below it.
/// `enters_lists`: also "list.0".
void add_keys(const Node& node,
              const std::string& path,
              std::vector<std::string>& out,
              bool enters_lists = false);

using Leaves = std::vector<std::pair<std::string, const Node*>>;
/// Adds every scalar, list and empty map at or below `node`, which is at `key`: the values that a
/// file sets.
void add_leaves(const std::string& key, const Node& node, Leaves& out);

/// Joins "a.b" and "c" to "a.b.c".
std::string child_path(const std::string& path, const std::string& key);

bool is_missing(const Node& node);  // ???

}  // namespace cytra::config
