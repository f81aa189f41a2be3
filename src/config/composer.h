#pragma once
// Hydra's composition: a primary config, its defaults list and the command line become one tree.
// Source: Hydra 1.3 (docs/config.md lists what is the same and what is better).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/node.h"

namespace cytra::config {

struct Group {
  std::string name;                  // "model", "experiment/im2im"
  std::vector<std::string> options;  // "unet", sorted
};

/// One file of a composition.
struct IncludedFile {
  std::string path;     // "model/unet"
  std::string name;     // on disk; empty for one of hydra
  std::string package;  // "model"; "" for the root of the tree
  std::string parent;   // the config whose defaults list names it
  Origin chosen;        // where that was decided
  bool is_self;         // the content of a file that has a defaults list
};

struct Composition {
  Node root;                        // with `hydra`; ${...} stand as they were written
  std::vector<IncludedFile> files;  // as they were merged
  std::vector<std::pair<std::string, std::string>> choices;  // group -> option
  std::vector<std::string> own_keys;  // of the primary config's own file: "paths", "paths.images"
};

/// What one file or override did to a value.
struct Change {
  std::string key;
  Node value;  // afterwards, as it was written
  bool removed;
  std::string file;  // "model/unet"; "" for an override
  Origin chosen;     // where the file was chosen; the override itself
};

class Composer {
 public:
  using Watch = std::function<void(const Node& root, const std::string& file, const Origin&)>;
  /// `folders`: config roots, the first that has a file wins. `job_name`: ${hydra:job.name}. Throws
  /// ConfigError when no folder exists.
  explicit Composer(std::vector<std::string> folders, std::string job_name = "app");

  /// Reads `primary`.yaml, applies its defaults list (nested lists, `_self_`, `override group:
  /// option`, `optional`, null, lists of options, group@package, `/absolute` groups, `# @package`
  /// headers), then the overrides (group=option, a.b=c, +a.b=c, ++a.b=c, ~a.b). With `planning`
  /// values to try are left out, and groups they choose may be open. `watch` gets the tree after
  /// each file (its path, and where it was chosen) and override ("", its place). Throws:
  /// ConfigError naming file:line or the override, and the nearest valid choice.
  Composition load(const std::string& primary,
                   const std::vector<std::string>& overrides,
                   bool planning = false,
                   const Watch& watch = {}) const;
  /// Composes a tree without `hydra`, with every ${...} resolved. Throws: what load() throws.
  Node compose(const std::string& primary, const std::vector<std::string>& overrides) const;
  /// Every change of `key` and of what is below it, in order; the last one won. Throws:
  /// ConfigError when there never was such a key.
  std::vector<Change> explain(const std::string& primary,
                              const std::vector<std::string>& overrides,
                              const std::string& key) const;

  /// The groups of the config folders, without those of `hydra`.
  std::vector<Group> groups() const;
  /// Every option of a group, also those in folders below it ("im2im/segmentation"). Sorted.
  std::vector<std::string> options(const std::string& group) const;
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  std::vector<std::string> folders_;
  std::string job_name_;
};

/// Replaces every ${...} in the tree as OmegaConf and Hydra do: ${a.b}, ${.sibling},
/// ${..of_parent}, ${a[b].${c}}, and the functions eval, hydra, kv_to_dict, now, oc.create,
/// oc.decode, oc.deprecated, oc.dict.keys, oc.dict.values, oc.env, oc.select; \${ stays text. The
/// top-level key `hydra` is only read, as values that Hydra's settings refer to may not be known
/// yet.
/// Throws: ConfigError for bad syntax, a missing key, a cycle (naming the chain), what the
/// functions refuse, and trees whose references copy too much.
void resolve(Node& root);
/// The resolved value at one dotted key of an unresolved tree; `root` is not changed. Throws:
/// ConfigError as resolve(), and when the key is missing or ???. `keeps_environment`:
/// ${oc.env:...} stays as it is.
Node evaluate(const Node& root, const std::string& key, bool keeps_environment = false);
/// Sets Node::path through the whole tree.
void set_paths(Node& node, const std::string& path = "");

}  // namespace cytra::config
