#pragma once
// Defaults lists: which files make up a config, in which order and at which package.
// Source: hydra/_internal/defaults_list.py and hydra/core/default_element.py of Hydra 1.3.8, rule
// by rule.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "config/overrides/overrides.h"

namespace cytra::config {

/// One entry of a defaults list: `[optional|override] group@package: option | [options] | null`, or
/// `path@package`.
struct DefaultsItem {
  std::string path;  // the group, or the config of an entry without one; a leading '/' is absolute
  bool is_group = false, is_list = false, optional = false, overrides = false, appended = false;
  std::vector<std::string> options;  // of a group; empty for null
  std::optional<std::string> package;
  Origin origin;
  bool is_self() const { return !is_group && path == "_self_"; }
};

struct ConfigFile {
  std::string name;  // its path on disk; empty for one of hydra
  Node content;      // the file without its defaults list
  std::vector<DefaultsItem> defaults;
  std::optional<std::string> header;  // of `# @package`
  bool moves_keys = false;            // `# @keys_of CytoDL`: moved_keys.h
};

/// A file of the built-in group `hydra`, "hydra/launcher/basic".
struct HydraFile {
  const char* path;
  const char* text;
};
const HydraFile* hydra_file(const std::string& path);  // nullptr: no such file
std::vector<std::string> hydra_files();

/// Files below the config folders and those of `hydra`, read once. Not thread-safe.
class Repository {
 public:
  explicit Repository(std::vector<std::string> folders) : folders_(std::move(folders)) {}
  /// Adds a folder that is searched last. Must be called before the first load of what may be in
  /// it.
  void add_folder(const std::string& folder) { folders_.push_back(folder); }
  /// Loads `path`.yaml; nullptr when no folder has it.
  const ConfigFile* load(const std::string& path);
  bool has_group(const std::string& group);
  /// Every option below `group` ("" for all): "unet", "im2im/segmentation". Sorted.
  std::vector<std::string> options(const std::string& group) const;
  std::vector<std::string> groups() const;  // without those of hydra
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  std::vector<std::string> folders_;
  std::map<std::string, std::unique_ptr<ConfigFile>> files_;
  std::map<std::string, bool> groups_;
};

/// A node in the tree of files; a file with a defaults list has its entries and one `self` node as
/// children.
struct DefaultsNode {
  DefaultsItem item;
  std::string parent_group, parent_package;  // where relative paths and packages of `item` begin
  std::optional<std::string> header;
  const ConfigFile* file = nullptr;  // nullptr: null, deleted or optional and missing
  bool self = false;
  std::vector<DefaultsNode> children;

  std::string group() const;        // "model"
  std::string config_path() const;  // "model/unet"
  std::string package(bool use_header = true) const;
  std::string default_package() const;  // the group with dots
  std::string override_key() const;     // "model", "model@teacher"
};

struct DefaultsTree {
  DefaultsNode hydra, primary;                               // merged in this order
  std::vector<std::pair<std::string, std::string>> choices;  // group -> option, "null" for none
};

/// Builds the tree. `choices`: the overrides of groups (group=option, +group=option, ~group). With
/// `planning`, a group that must be chosen may be open: a sweep will choose it.
DefaultsTree build_defaults_tree(Repository& repository,
                                 const std::string& primary,
                                 const std::vector<Override>& choices,
                                 bool planning = false);

}  // namespace cytra::config
