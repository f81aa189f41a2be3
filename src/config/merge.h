#pragma once
// How trees become one: OmegaConf's merge rules and the command line's values in struct mode.
#include <string>
#include <vector>

#include "config/node.h"
#include "config/overrides.h"

namespace cytra::config {

/// Merges `source` into `root` at the dotted `package` ("" for the root). Maps merge, lists and
/// scalars are replaced, ??? leaves what is there; a map that meets a list is an error.
void merge_at(Node& root, const std::string& package, Node source);

/// Sets, adds or removes one value. `groups` are proposed besides the tree's keys when the key does
/// not exist.
void apply_override(Node& root, const Override& override, const std::vector<std::string>& groups);

/// The key of the tree (or group) most like `key`, or "": beside it, by its end (optimizer.lr ->
/// model.optimizer.lr), by spelling, by its last word.
std::string nearest_key(const Node& root,
                        const std::string& key,
                        const std::vector<std::string>& groups);

/// True for text with ${ in it, escaped or not.
bool is_reference(const Node& node);
bool is_missing(const Node& node);  // ???

}  // namespace cytra::config
