#include "config/merge.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/strings.h"
#include "config/interpolate.h"
#include "config/scalar.h"

namespace cytra::config {
namespace {

bool is_container(const Node& node) {
  return node.kind == Kind::map || node.kind == Kind::list;
}

[[noreturn]] void fail_clash(const Node& target, const Node& source, const std::string& path) {
  throw ConfigError(source.origin.text() + ": " + path + ": a " + name_of(source.kind) +
                    " meets the " + name_of(target.kind) + " of " + target.origin.text() +
                    ", expected a " + name_of(target.kind));
}

std::string child_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

/// Before a map merges onto a text with ${...} that leads to a container, OmegaConf copies that
/// container there.
void copy_referenced(const Node& root, Node& node, const std::string& path) {
  if (!is_reference(node)) return;
  if (std::optional<Node> copy = referenced_container(root, path)) node = std::move(*copy);
}

void merge_into(Node& target, Node&& source, Node& root, const std::string& path) {
  copy_referenced(root, target, path);
  if (is_missing(source)) return;
  if (is_container(source) && is_container(target) && source.kind != target.kind)
    fail_clash(target, source, path);
  if (!source.is_map() || !target.is_map()) {
    target = std::move(source);
    return;
  }
  for (auto& [key, value] : source.map) {
    if (Node* child = target.find_direct(key)) {
      merge_into(*child, std::move(value), root, child_path(path, key));
    } else {
      target.map.emplace_back(key, std::move(value));
    }
  }
}

void add_paths(const Node& node, const std::string& path, std::vector<std::string>& out) {
  if (!path.empty()) out.push_back(path);
  for (const auto& [key, child] : node.map) add_paths(child, child_path(path, key), out);
  for (std::size_t i = 0; i < node.list.size(); ++i) {
    add_paths(node.list[i], child_path(path, std::to_string(i)), out);
  }
}

[[noreturn]] void fail_unknown(const Node& root,
                               const Override& override,
                               const std::string& key,
                               const std::vector<std::string>& groups) {
  const std::string best = nearest_key(root, key, groups);
  std::string text = override.where() + ": no key '" + key + "'.";
  if (!best.empty()) text += " Did you mean '" + best + "'?";
  if (override.action == Override::Action::change) {
    text += " '+" + override.origin.file->substr(0, 200) + "' would add a new key.";
  }
  throw ConfigError(text);
}

/// A map merges key by key, and each must exist.
void merge_known(Node& target,
                 const Node& value,
                 Node& root,
                 const Override& override,
                 const std::string& path) {
  for (const auto& [key, child] : value.map) {
    Node* place = target.find_direct(key);
    if (place == nullptr) fail_unknown(root, override, child_path(path, key), {});
    if (child.is_map() && place->is_map()) {
      merge_known(*place, child, root, override, child_path(path, key));
    } else {
      merge_into(*place, Node(child), root, child_path(path, key));
    }
  }
}

void set_value(Node& target, const Node& value, Node& root, const std::string& path) {
  if (is_container(value) && is_container(target)) {
    merge_into(target, Node(value), root, path);
  } else {
    target = value;
  }
}

/// The place of `key`, made when it is not there; scalars on the way become maps.
Node& make_place(Node& root, const Override& override) {
  Node* node = &root;
  std::string path;
  for (const std::string& step : split(override.key, '.')) {
    if (node->kind == Kind::list) {
      Node* item = node->find(step);
      if (item == nullptr) {
        throw ConfigError(override.where() + ": '" + path + "' is a list of " +
                          std::to_string(node->list.size()) +
                          ", expected an index of it instead of '" + step + "'");
      }
      node = item;
    } else {
      if (!node->is_map()) {
        *node = Node::make_map();
        node->origin = override.origin;
      }
      Node* child = node->find_direct(step);
      node = child != nullptr ? child : &node->set(step, Node());
    }
    path = child_path(path, step);
  }
  return *node;
}

void remove_value(Node& root, const Override& override, const std::vector<std::string>& groups) {
  const Node* node = root.find(override.key);
  if (node == nullptr) fail_unknown(root, override, override.key, groups);
  if (!override.values.empty() && !equal(*node, override.values[0])) {
    throw ConfigError(override.where() + ": '" + override.key + "' is " + plain_text(*node) +
                      ", expected " + plain_text(override.values[0]));
  }
  const std::size_t dot = override.key.rfind('.');
  Node& parent = dot == std::string::npos ? root : *root.find(override.key.substr(0, dot));
  if (parent.kind == Kind::list) {
    parent.list.erase(parent.list.begin() + (node - parent.list.data()));
  } else {
    const std::string last = override.key.substr(dot + 1);
    parent.map.erase(std::find_if(parent.map.begin(), parent.map.end(), [&](const auto& entry) {
      return entry.first == last;
    }));
  }
}

}  // namespace

std::string nearest_key(const Node& root,
                        const std::string& key,
                        const std::vector<std::string>& groups) {
  std::vector<std::string> paths, words;
  add_paths(root, "", paths);
  const std::size_t dot = key.rfind('.');
  const std::string parent = dot == std::string::npos ? "" : key.substr(0, dot);
  const std::string last = key.substr(dot + 1);
  const Node* place = parent.empty() ? &root : root.find(parent);
  std::vector<std::string> siblings = place == nullptr ? std::vector<std::string>() : place->keys();
  if (parent.empty()) siblings.insert(siblings.end(), groups.begin(), groups.end());
  if (const std::string best = nearest(last, siblings); !best.empty())
    return child_path(parent, best);
  for (const std::string& ending : {"." + key, "." + last}) {
    std::string best;
    for (const std::string& path : paths) {
      if (ends_with(path, ending) && (best.empty() || path.size() < best.size())) best = path;
    }
    if (!best.empty()) return best;
    if (const std::string whole = nearest(key, paths); !whole.empty()) return whole;
  }
  for (const std::string& path : paths) words.push_back(path.substr(path.rfind('.') + 1));
  const std::string word = nearest(last, words);
  const auto found = std::find(words.begin(), words.end(), word);
  return word.empty() ? "" : paths[static_cast<std::size_t>(found - words.begin())];
}

bool is_missing(const Node& node) {
  return node.kind == Kind::string && node.string == "???";
}

bool is_reference(const Node& node) {
  return node.kind == Kind::string && has_interpolation(node.string);
}

void merge_at(Node& root, const std::string& package, Node source) {
  Node* node = &root;
  std::string path;
  if (!package.empty()) {
    for (const std::string& step : split(package, '.')) {
      path = child_path(path, step);
      Node* child = node->find_direct(step);
      if (child == nullptr) child = &node->set(step, Node::make_map());
      copy_referenced(root, *child, path);
      if (child->kind == Kind::list) fail_clash(*child, source, path);
      if (!child->is_map()) *child = Node::make_map();
      if (child->origin.file == nullptr) child->origin = source.origin;
      node = child;
    }
  }
  merge_into(*node, std::move(source), root, path);
}

void apply_override(Node& root, const Override& override, const std::vector<std::string>& groups) {
  if (override.action == Override::Action::remove) return remove_value(root, override, groups);
  const Node& value = override.values.at(0);
  Node* node = root.find(override.key);
  if (override.action == Override::Action::change) {
    if (node == nullptr) fail_unknown(root, override, override.key, groups);
    if (value.is_map() && node->is_map())
      return merge_known(*node, value, root, override, override.key);
    return set_value(*node, value, root, override.key);
  }
  const bool taken = node != nullptr && !node->is_null() && !is_missing(*node);
  if (override.action == Override::Action::add && taken && !is_container(value)) {
    throw ConfigError(override.where() + ": '" + override.key + "' is already " +
                      plain_text(*node).substr(0, 200) + ", expected '" +
                      override.origin.file->substr(1, 200) + "' without '+'");
  }
  set_value(make_place(root, override), value, root, override.key);
}

}  // namespace cytra::config
