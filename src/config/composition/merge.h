#pragma once
// How trees become one: OmegaConf's merge rules.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/node.h"
#include "config/overrides/overrides.h"

namespace cytra::config {

/// Merges the files of one composition into `root`, in their order: maps merge, lists and scalars
/// are replaced, ??? leaves what is there; a map that meets a list is an error. Source: _map_merge
/// and _list_merge of omegaconf/basecontainer.py. As Hydra it moves the maps and lists of a
/// file at the root into the tree: when that file is used again, it brings what the others have
/// made of them.
class FileMerger {
 public:
  explicit FileMerger(Node& root) : root_(root) {}
  /// `package`: the dotted place, "" for the root. `repeated`: this content is merged more than
  /// once.
  void merge(const Node& content, const std::string& package, bool repeated);

 private:
  using Path = std::vector<std::string>;
  struct Moved {
    Node content;
    std::vector<Path> paths;  // what the tree and the content share
  };
  void add_moved(const Node& source, const Node& target, Path& path, std::vector<Path>& out) const;
  static bool replaces(const Node& source, const Path& path);

  Node& root_;
  std::map<const Node*, Moved> moved_;
};

/// Called with the path of a key that the tree does not have before it is added.
using OnNewKey = std::function<void(const std::string& path)>;
/// Merges `source` into `target`, the node of `root` at `path`. A `target` that refers to a map or
/// list is first replaced by a copy of it, as OmegaConf does.
void merge_into(Node& target,
                Node source,
                Node& root,
                const std::string& path,
                const OnNewKey& on_new_key = {});

/// The key of the tree (or group) most like `key`, or "": beside it, by its end (optimizer.lr ->
/// model.optimizer.lr), by spelling, by its last word.
std::string nearest_key(const Node& root,
                        const std::string& key,
                        const std::vector<std::string>& groups);

/// "a.b" and "c" -> "a.b.c"
std::string child_path(const std::string& path, const std::string& key);

/// True for text with ${ in it, escaped or not.
bool is_reference(const Node& node);
bool is_missing(const Node& node);  // ???

}  // namespace cytra::config
