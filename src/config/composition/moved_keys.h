#pragma once
// Names that CytoDL's guides use for keys that live elsewhere here. Their values go where they
// belong, and say themselves where they were written. Only where a file of the composition begins
// with `# @keys_of CytoDL`, as Cytra's primary configs do: a tree of others keeps its keys.
#include <map>
#include <string>

#include "config/node.h"
#include "config/overrides/overrides.h"

namespace cytra::config {

/// After each file that is merged into `root`: takes values from old places to the new ones that
/// the tree has. Throws: ConfigError when one file gives both names different values.
void take_moved_keys(Node& root);

/// The same of the command line's overrides, in their order.
class MovedOverrides {
 public:
  /// The override with the key's present name. Throws: ConfigError when an earlier one gives the
  /// other name another value.
  Override current(const Node& root, const Override& override);

 private:
  std::map<std::string, Override> given_;  // by present name
};

}  // namespace cytra::config
