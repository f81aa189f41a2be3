#pragma once
// Moves keys that CytoDL's guides have in other places than Cytra. The values go to Cytra's
// places, and keep their origin. This applies only where a file of the composition begins with `#
// @keys_of CytoDL`, as Cytra's primary configs do: other trees keep their keys.
#include <map>
#include <optional>
#include <string>

#include "config/node.h"
#include "config/overrides/overrides.h"

namespace cytra::config {

/// Moves values from old places to the new ones that the tree has. Called after each file that is
/// merged into `root`. Throws: ConfigError when one file gives both names different values.
void take_moved_keys(Node& root);

/// Moves the keys of the command line's overrides, in their order.
class MovedOverrides {
 public:
  /// Returns the override with the key's present name; none for a key without effect, which is
  /// told. Throws: ConfigError when an earlier one gives the other name another value.
  std::optional<Override> current(const Node& root, const Override& override);

 private:
  std::map<std::string, Override> given_;  // by present name
};

}  // namespace cytra::config
