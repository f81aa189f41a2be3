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
#include "config/overrides.h"

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
  Node content;  // without the defaults list
  std::vector<DefaultsItem> defaults;
  std::optional<std::string> header;  // of `# @package`
};

/// Files below the config folders, read once. Not thread-safe.
class Repository {
 public:
  explicit Repository(const std::vector<std::string>& folders) : folders_(folders) {}
  /// nullptr when no folder has `path`.yaml.
  const ConfigFile* load(const std::string& path);
  bool has_group(const std::string& group);
  /// Every option below `group` ("" for all): "unet", "im2im/segmentation". Sorted.
  std::vector<std::string> options(const std::string& group) const;
  std::vector<std::string> groups() const;
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  const std::vector<std::string>& folders_;
  std::map<std::string, std::unique_ptr<ConfigFile>> files_;
  std::map<std::string, bool> groups_;
};

/// The tree of files; a file with a defaults list has its entries and one `self` node as children.
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

/// `choices`: the overrides of groups (group=option, +group=option, ~group).
DefaultsNode build_defaults_tree(Repository& repository,
                                 const std::string& primary,
                                 const std::vector<Override>& choices);

}  // namespace cytra::config
