#pragma once
// Merges trees by OmegaConf's rules.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/keys.h"
#include "config/node.h"

namespace cytra::config {

/// Merges the files of one composition into `root`, in their order: maps merge, lists and scalars
/// are replaced, ??? leaves the earlier value; merging a map and a list is an error. Source:
/// _map_merge and _list_merge of omegaconf/basecontainer.py. Like Hydra, it moves the maps and
/// lists of a file at the root into the tree: when that file is used again, it has the changes
/// that other files made to them.
class FileMerger {
 public:
  explicit FileMerger(Node& root) : root_(root) {}
  /// Merges the content of a file. `package`: the dotted place, "" for the root. `repeated`: this
  /// content is merged more than once.
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

/// Whether the node is text with ${ in it, escaped or not.
bool is_reference(const Node& node);

}  // namespace cytra::config
