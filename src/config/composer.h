#pragma once
// Hydra's composition: a primary config, its defaults list and the command line become one tree.
// Source: Hydra 1.3 (docs/config.md lists what is the same and what is missing).
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

struct Group {
  std::string name;                  // "model", "experiment/im2im"
  std::vector<std::string> options;  // "unet", sorted
};

class Composer {
 public:
  /// `folders`: config roots, the first that has a file wins. Throws ConfigError when none exists.
  explicit Composer(std::vector<std::string> folders);

  /// Reads `primary`.yaml, applies its defaults list (nested lists, `_self_`, `override group:
  /// option`, `optional`, null, lists of options, group@package, `/absolute` groups, `# @package`
  /// headers), then the overrides (group=option, a.b=c, +a.b=c, ++a.b=c, ~a.b), then resolves every
  /// ${...}. Throws: ConfigError naming file:line or the override, and the nearest valid choice.
  Node compose(const std::string& primary, const std::vector<std::string>& overrides) const;
  /// The same without resolving ${...}.
  Node compose_unresolved(const std::string& primary,
                          const std::vector<std::string>& overrides) const;

  std::vector<Group> groups() const;

 private:
  std::vector<std::string> folders_;
};

/// Replaces every ${...} in the tree as OmegaConf and Hydra do: ${a.b}, ${.sibling},
/// ${..of_parent}, ${a[b].${c}}, and the functions eval, hydra, kv_to_dict, now, oc.create,
/// oc.decode, oc.deprecated, oc.dict.keys, oc.dict.values, oc.env, oc.select; \${ stays text.
/// Throws: ConfigError for bad syntax, a missing key, a cycle (naming the chain), what the
/// functions refuse, and trees whose references copy too much.
void resolve(Node& root);
/// The value at one dotted key of an unresolved tree, resolved; `root` stays as it is. Throws:
/// ConfigError as resolve(), and when the key is missing or ???.
Node evaluate(const Node& root, const std::string& key);
/// Throws ConfigError listing every `???` left in the tree.
void require_complete(const Node& root);
/// Sets Node::path through the whole tree.
void set_paths(Node& node, const std::string& path = "");

}  // namespace cytra::config
