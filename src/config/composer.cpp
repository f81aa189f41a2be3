#include "config/composer.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "config/composition/apply_override.h"
#include "config/composition/defaults.h"
#include "config/composition/hydra_node.h"
#include "config/composition/merge.h"
#include "config/composition/moved_keys.h"
#include "config/interpolation/interpolate.h"
#include "config/run_config.h"

namespace cytra::config {
namespace {

void check_not_sweep(const Override& override) {
  using Sweep = Override::Sweep;
  if (override.sweep == Sweep::none) return;
  const bool counted = override.sweep != Sweep::interval && override.sweep != Sweep::glob;
  const std::size_t count = override.values.size();
  std::string text = override.where() + ": ";
  text += counted ? std::to_string(count) + (count == 1 ? " value" : " values") : "values";
  text += " to try, expected one value; --multirun runs a job for each";
  if (override.sweep == Sweep::simple) {
    const std::string list = join(override.texts, ",");
    text +=
        (list.size() > 100 ? ", [a,b]" : ", [" + list + "]") + " is a list, quotes make it text";
  }
  throw ConfigError(text);
}

/// Throws for an unknown group. A key with '@' can only mean a group; a key with '/' that does not
/// exist is a mistake, too, though Hydra adds it for +a/b=c.
[[noreturn]] void fail_no_group(const Override& override, const std::vector<std::string>& groups) {
  throw ConfigError(override.where() + ": no group '" + override.key + "'." +
                    suggestion(override.key, groups));
}

/// Checks that only the primary config sets the search path: the folders must be known before any
/// other file is read.
void check_searchpath(const ConfigFile& file, const std::string& package) {
  const Node* path = package.empty()      ? file.content.find("hydra.searchpath")
                     : package == "hydra" ? file.content.find("searchpath")
                                          : nullptr;
  if (path == nullptr || path->is_null() || file.name.empty()) return;
  throw ConfigError(path->origin.text() +
                    ": hydra.searchpath, expected it in the primary config or on the command line");
}

struct MergedFile {
  const ConfigFile* file;
  IncludedFile included;
};

/// Adds the files of a defaults tree in the order they are merged. `parent`: the config whose list
/// names `node`, nullptr for the primary config.
void add_parts(const DefaultsNode& node,
               const DefaultsNode* parent,
               const std::string& package,
               std::vector<MergedFile>& out) {
  const auto add = [&](bool is_self) {
    if (parent != nullptr) check_searchpath(*node.file, package);
    const std::string by = parent == nullptr ? "" : parent->config_path();
    out.push_back(
        {node.file, {node.config_path(), node.file->name, package, by, node.item.origin, is_self}});
  };
  if (node.file == nullptr) return;
  if (node.children.empty()) add(false);
  for (const DefaultsNode& child : node.children) {
    if (child.self) {
      add(true);
    } else {
      add_parts(child, &node, child.package(), out);
    }
  }
}

}  // namespace

Composer::Composer(std::vector<std::string> folders, std::string job_name)
    : folders_(std::move(folders)), job_name_(std::move(job_name)) {
  for (const std::string& folder : folders_) {
    if (folder_exists(folder)) return;
  }
  throw ConfigError("no config folder among: " + join(folders_, ", ") +
                    ", expected one that exists");
}

Composition Composer::load(const std::string& primary,
                           const std::vector<std::string>& texts,
                           bool planning,
                           const Watch& watch) const {
  std::vector<Override> overrides, choices, values;
  for (const std::string& text : texts) overrides.push_back(parse_override(text));
  Repository repository(folders_);
  const ConfigFile* first = repository.load(primary);
  if (first != nullptr && !first->content.is_map())
    throw ConfigError(first->content.where() + ": a list, expected the primary config to be a map");
  const Node empty = Node::make_map();
  for (const std::string& folder :
       searchpath_of(first == nullptr ? empty : first->content, overrides))
    repository.add_folder(folder);
  for (const Override& override : overrides) {
    if (planning && override.sweep != Override::Sweep::none) continue;
    check_not_sweep(override);
    const bool is_map = !override.values.empty() && override.values[0].is_map();
    const bool is_group = !is_map && repository.has_group(override.key);
    if (!is_group && override.package) fail_no_group(override, repository.groups());
    (is_group ? choices : values).push_back(override);
  }
  Composition result;
  Node& root = result.root;
  root = Node::make_map();
  DefaultsTree tree = build_defaults_tree(repository, primary, choices, planning);
  result.choices = std::move(tree.choices);
  std::vector<MergedFile> parts;
  for (const DefaultsNode* part : {&tree.hydra, &tree.primary})
    add_parts(*part, nullptr, part->package(), parts);
  std::map<const ConfigFile*, int> uses;
  bool moves_keys = false;
  for (const MergedFile& part : parts) {
    ++uses[part.file];
    moves_keys = moves_keys || part.file->moves_keys;
  }
  add_keys(tree.primary.file->content, "", result.own_keys);
  FileMerger merger(root);
  for (MergedFile& part : parts) {
    merger.merge(part.file->content, part.included.package, uses[part.file] > 1);
    if (moves_keys) take_moved_keys(root);
    if (watch) watch(root, part.included.path, part.included.chosen);
    result.files.push_back(std::move(part.included));
  }
  root.origin = tree.primary.file->content.origin;
  if (const Node* hydra = root.find_direct("hydra"))
    check_hydra_keys(*hydra, repository.load("hydra/config")->content);
  MovedOverrides moved;
  for (const Override& given : values) {
    const std::optional<Override> current = moves_keys ? moved.current(root, given) : given;
    if (!current) continue;
    const Override& value = *current;
    // Looking for groups reads every folder, and only the message for an unknown key needs them.
    const bool unknown =
        value.action == Override::Action::change && root.find(value.key) == nullptr;
    if (value.key.find('/') != std::string::npos && root.find(value.key) == nullptr)
      fail_no_group(value, repository.groups());
    apply_override(root, value, unknown ? repository.groups() : std::vector<std::string>());
    if (watch) watch(root, "", value.origin);
  }
  fill_hydra(root, {job_name_, primary, overrides, result.choices, repository.folders()});
  set_paths(root);
  check_syntax(root);
  return result;
}

Node Composer::compose(const std::string& primary,
                       const std::vector<std::string>& overrides) const {
  return job_config(load(primary, overrides).root);
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

std::vector<std::string> Composer::options(const std::string& group) const {
  return group.empty() ? std::vector<std::string>() : Repository(folders_).options(group);
}

Node evaluate(const Node& root, const std::string& key, bool keeps_environment) {
  check_syntax(root);
  Interpolator tree(root);
  tree.keeps_environment = keeps_environment;
  const std::string source = "'" + key + "'";
  const Interpolator::Selection selection =
      tree.select_from(tree.root(), tree.root(), key, source, true);
  if (selection.result != Interpolator::Selection::Result::found)
    tree.fail_missing_key(tree.root(), selection, source);
  Node result = tree.resolved(selection.value, selection.last->node->origin);
  set_paths(result, key);
  return result;
}

void resolve(Node& root) {
  if (!root.is_container()) return;
  Interpolator tree(root);
  Value whole;
  whole.kind = Value::Kind::container;
  whole.site = &tree.root();
  Node result = tree.resolved(whole, root.origin);
  root = std::move(result);
  set_paths(root);
}

void set_paths(Node& node, const std::string& path) {
  node.path = path;
  for (auto& [key, child] : node.map) set_paths(child, path.empty() ? key : path + "." + key);
  for (std::size_t i = 0; i < node.list.size(); ++i)
    set_paths(node.list[i], path + "[" + std::to_string(i) + "]");
}

}  // namespace cytra::config
