#include "config/composer.h"

#include <filesystem>

#include "base/error.h"
#include "base/strings.h"
#include "config/defaults.h"
#include "config/interpolate.h"
#include "config/merge.h"

namespace cytra::config {
namespace {

void check_not_sweep(const Override& override) {
  if (override.values.size() < 2) return;
  throw ConfigError(
      override.where() +
      ": a list of values to try, expected one value; [a,b] is a list, 'a,b' in quotes text");
}

/// A key with '/' or '@' can only mean a group.
[[noreturn]] void fail_no_group(const Override& override, const std::vector<std::string>& groups) {
  throw ConfigError(override.where() + ": no group '" + override.key + "'." +
                    suggestion(override.key, groups));
}

void merge_tree(const DefaultsNode& node, Node& root, const std::string& package) {
  if (node.file == nullptr) return;
  if (node.children.empty()) merge_at(root, package, node.file->content);
  for (const DefaultsNode& child : node.children)
    merge_tree(child, root, child.self ? package : child.package());
}

void add_missing(const Node& node, std::vector<std::string>& out) {
  if (is_missing(node)) out.push_back(node.path + " (" + node.origin.text() + ")");
  for (const Node& item : node.list) add_missing(item, out);
  for (const auto& [key, child] : node.map) add_missing(child, out);
}

}  // namespace

Composer::Composer(std::vector<std::string> folders) : folders_(std::move(folders)) {
  for (const std::string& folder : folders_) {
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) return;
  }
  throw ConfigError("no config folder among: " + join(folders_, ", ") +
                    ", expected one that exists");
}

Node Composer::compose_unresolved(const std::string& primary,
                                  const std::vector<std::string>& overrides) const {
  Repository repository(folders_);
  std::vector<Override> choices, values;
  for (const std::string& text : overrides) {
    Override override = parse_override(text);
    check_not_sweep(override);
    const bool is_map = !override.values.empty() && override.values[0].is_map();
    const bool is_group = override.key.find('.') == std::string::npos && !is_map &&
                          repository.has_group(override.key);
    if (!is_group && (override.package || override.key.find('/') != std::string::npos)) {
      fail_no_group(override, repository.groups());
    }
    (is_group ? choices : values).push_back(std::move(override));
  }
  Node root = Node::make_map();
  const DefaultsNode tree = build_defaults_tree(repository, primary, choices);
  merge_tree(tree, root, tree.package());
  if (root.origin.file == nullptr) root.origin = tree.file->content.origin;
  for (const Override& value : values) {
    // Looking for groups reads every folder; only the message of an unknown key needs them.
    const bool unknown =
        value.action == Override::Action::change && root.find(value.key) == nullptr;
    apply_override(root, value, unknown ? repository.groups() : std::vector<std::string>());
  }
  set_paths(root);
  check_syntax(root);
  return root;
}

Node Composer::compose(const std::string& primary,
                       const std::vector<std::string>& overrides) const {
  Node root = compose_unresolved(primary, overrides);
  // Hydra keeps its own settings from the program too, and they refer to values that only it has.
  for (auto entry = root.map.begin(); entry != root.map.end(); ++entry) {
    if (entry->first != "hydra") continue;
    root.map.erase(entry);
    break;
  }
  resolve(root);
  return root;
}

std::vector<Group> Composer::groups() const {
  const Repository repository(folders_);
  std::vector<Group> result;
  for (const std::string& name : repository.groups()) {
    Group group{name, {}};
    for (const std::string& option : repository.options(name)) {
      if (option.find('/') == std::string::npos) group.options.push_back(option);
    }
    result.push_back(std::move(group));
  }
  return result;
}

void require_complete(const Node& root) {
  std::vector<std::string> missing;
  add_missing(root, missing);
  if (!missing.empty())
    throw ConfigError("values that must be set are still ???: " + join(missing, ", ") +
                      ", expected key=value for each");
}

void set_paths(Node& node, const std::string& path) {
  node.path = path;
  for (auto& [key, child] : node.map) set_paths(child, path.empty() ? key : path + "." + key);
  for (std::size_t i = 0; i < node.list.size(); ++i) {
    set_paths(node.list[i], path + "[" + std::to_string(i) + "]");
  }
}

}  // namespace cytra::config
