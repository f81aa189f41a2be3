#include "config/composition/merge.h"

#include <optional>

#include "base/error.h"
#include "base/strings.h"
#include "config/interpolation/interpolate.h"

namespace cytra::config {
namespace {

[[noreturn]] void fail_clash(const Node& target, const Node& source, const std::string& path) {
  throw ConfigError(source.origin.text() + ": " + path + ": a " + name_of(source.kind) +
                    " meets the " + name_of(target.kind) + " of " + target.origin.text() +
                    ", expected a " + name_of(target.kind));
}

/// Copies the container that a text with ${...} leads to in place of the text, as OmegaConf does
/// before it merges a map onto it.
void copy_referenced(const Node& root, Node& node, const std::string& path) {
  if (!is_reference(node)) return;
  if (std::optional<Node> copy = referenced_container(root, path)) node = std::move(*copy);
}

/// Puts `source` below the keys of `package`.
Node wrapped(Node source, const std::string& package) {
  if (package.empty()) return source;
  const std::vector<std::string> steps = split(package, '.');
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    Node map = Node::make_map();
    map.origin = source.origin;
    map.set(*step, std::move(source));
    source = std::move(map);
  }
  return source;
}

}  // namespace

bool is_reference(const Node& node) {
  return node.kind == Kind::string && has_interpolation(node.string);
}

void merge_into(
    Node& target, Node source, Node& root, const std::string& path, const OnNewKey& on_new_key) {
  copy_referenced(root, target, path);
  if (is_missing(source)) return;
  if (source.is_container() && target.is_container() && source.kind != target.kind)
    fail_clash(target, source, path);
  if (!source.is_map() || !target.is_map()) {
    target = std::move(source);
    return;
  }
  for (auto& [key, value] : source.map) {
    const std::string child = child_path(path, key);
    if (Node* place = target.find_direct(key)) {
      merge_into(*place, std::move(value), root, child, on_new_key);
    } else {
      if (on_new_key) on_new_key(child);
      target.map.emplace_back(key, std::move(value));
    }
  }
}

/// Adds the maps and lists that merging `source` will move: those for which the tree has none.
void FileMerger::add_moved(const Node& source,
                           const Node& target,
                           Path& path,
                           std::vector<Path>& out) const {
  for (const auto& [key, child] : source.map) {
    if (!child.is_container()) continue;
    path.push_back(key);
    Node met;
    if (const Node* node = target.find_direct(key)) met = *node;
    copy_referenced(root_, met, join(path, "."));
    if (!met.is_container()) {
      out.push_back(path);
    } else if (met.is_map()) {
      add_moved(child, met, path, out);
    }
    path.pop_back();
  }
}

/// True when merging `source` puts another value at `path` or above it.
bool FileMerger::replaces(const Node& source, const Path& path) {
  const Node* node = &source;
  for (const std::string& key : path) {
    node = node->find_direct(key);
    if (node == nullptr) return false;
    if (!node->is_container()) return !is_missing(*node);
  }
  return false;
}

void FileMerger::merge(const Node& content, const std::string& package, bool repeated) {
  const auto place = [](Node& root, const Path& path) {
    Node* node = &root;
    for (const std::string& key : path) node = node == nullptr ? nullptr : node->find_direct(key);
    return node;
  };
  const auto keep = [&](Moved& moved, const Path& path) {
    const Node* now = place(root_, path);
    if (now != nullptr) *place(moved.content, path) = *now;
  };
  const auto again = moved_.find(&content);
  if (again != moved_.end()) {
    for (const Path& path : again->second.paths) keep(again->second, path);
  }
  Node source = wrapped(again == moved_.end() ? content : again->second.content, package);
  for (auto& entry : moved_) {
    Moved& moved = entry.second;
    auto& paths = moved.paths;
    std::erase_if(paths, [&](const Path& path) {
      const bool gone = replaces(source, path);
      if (gone) keep(moved, path);
      return gone;
    });
  }
  if (repeated && package.empty() && again == moved_.end()) {
    Path path;
    Moved& moved = moved_[&content];
    moved.content = content;
    add_moved(source, root_, path, moved.paths);
  }
  merge_into(root_, std::move(source), root_, "");
}

}  // namespace cytra::config
