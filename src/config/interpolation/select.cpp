// Part of config/interpolation/interpolate.h: following a key through a tree.
#include <algorithm>

#include "base/error.h"
#include "config/interpolation/interpolate.h"
#include "config/keys.h"
#include "config/text/cast.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

constexpr std::size_t large_map = 16, max_selected_key = 2000, max_suggested = 300;

/// Splits a key: "a[b].c" -> a, b, c; "" -> "" (OmegaConf's split_key).
std::vector<std::string> steps_of(std::string_view key) {
  const std::size_t head = std::min(key.find_first_of(".["), key.size());
  std::vector<std::string> steps;
  if (head > 0 || key.empty() || key[0] != '[') steps.emplace_back(key.substr(0, head));
  for (std::size_t i = head; i < key.size();) {
    const bool dot = key[i] == '.';
    std::size_t end = std::min(key.find_first_of(dot ? ".[" : "]\n", i + 1), key.size());
    if (!dot && (key[i] != '[' || end == key.size() || key[end] != ']')) {
      ++i;  // OmegaConf leaves out what is no .step and no [step]
    } else {
      steps.emplace_back(key.substr(i + 1, end - i - 1));
      i = dot ? end : end + 1;
    }
  }
  return steps;
}

}  // namespace

void Interpolator::fail_missing_key(const Site& node,
                                    const Selection& selection,
                                    const std::string& source) const {
  const std::string refers = source + " refers to " + quote(selection.key) + ", ";
  if (selection.result == Selection::Result::no_container) {
    fail(node,
         refers + "but '" + selection.last->path() + "' holds " +
             config::name_of(selection.value.kind) + ", expected a map or list with a key in it");
  }
  std::string best =
      selection.place.size() <= max_suggested ? nearest_key(tree_, selection.place, {}) : "";
  if (best == node.path()) best.clear();
  fail(node,
       refers + "which does not exist." + (best.empty() ? "" : " Did you mean '" + best + "'?"));
}

/// The child that one step of a key names, or nullptr.
const Site* Interpolator::step(const Site& node, const Site& container, const std::string& key) {
  if (container.node->kind == Kind::list) {
    int64_t index = 0;
    if (!read_python_integer(key, index)) {
      fail(node,
           "'" + container.path() + "' is a list and " + quote(key) +
               " no index, expected 0, 1, ...");
    }
    const bool is_inside = index >= 0 && index < std::ssize(container.node->list);
    return is_inside ? &child(container, static_cast<std::size_t>(index)) : nullptr;
  }
  const auto& map = container.node->map;
  if (map.size() <= large_map) {
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (map[i].first == key) return &child(container, i);
    }
    return nullptr;
  }
  const auto [entry, added] = large_maps_.try_emplace(container.node);
  if (added) {
    for (std::size_t i = 0; i < map.size(); ++i) entry->second.emplace(map[i].first, i);
  }
  const auto found = entry->second.find(key);
  return found == entry->second.end() ? nullptr : &child(container, found->second);
}

Interpolator::Selection Interpolator::select(const Site& node,
                                             const std::string& key,
                                             const std::string& source,
                                             bool needs_value) {
  const std::size_t dots = std::min(key.find_first_not_of('.'), key.size());
  if (dots == 0) return select_from(node, node.root(), key, source, needs_value);
  const Site* from = node.parent;
  for (std::size_t i = 1; from != nullptr && i < dots; ++i) from = from->parent;
  if (from == nullptr) fail(node, source + " has too many dots, expected a container that far up");
  return select_from(node, *from, std::string_view(key).substr(dots), source, needs_value);
}

Interpolator::Selection Interpolator::select_from(const Site& node,
                                                  const Site& from,
                                                  std::string_view key,
                                                  const std::string& source,
                                                  bool needs_value) {
  Selection selection;
  selection.last = &from;
  selection.key = from.path();
  if (!selection.key.empty() && !key.empty()) selection.key += '.';
  selection.key += key;
  selection.value.kind = Value::Kind::container;
  selection.value.site = &from;
  if (key.size() > max_selected_key)
    fail(node, "a key is too long, expected at most 2000 characters");
  if (!key.empty()) {
    const std::vector<std::string> steps = steps_of(key);
    if (steps.empty()) fail(node, source + " names no key, expected one");
    for (const std::string& name : steps) {
      if (selection.value.kind != Value::Kind::container) {
        selection.result = Selection::Result::no_container;
        return selection;
      }
      const Site* next = step(node, *selection.value.site, name);
      if (next == nullptr) {
        const std::string before = selection.value.site->path();
        selection.place = before.empty() ? name : before + "." + name;
        return selection;
      }
      selection.last = next;
      if (needs_value && is_missing(*next->node)) {
        const std::string path = next->path();
        fail(node,
             source + " refers to " + quote(selection.key) +
                 (path == selection.key ? ", which" : ", but '" + path + "'") +
                 " is ???, expected a value (" + path + "=...)");
      }
      selection.value = read(*next);
    }
  }
  selection.result = Selection::Result::found;
  return selection;
}

namespace {

/// The site at a dotted path of raw keys, which may hold dots themselves; nullptr: there is none.
const Site* find_site(Interpolator& tree, const Site& from, std::string_view path) {
  if (path.empty()) return &from;
  const Node& node = *from.node;
  for (std::size_t i = 0; i < node.map.size() + node.list.size(); ++i) {
    const std::string index = node.is_map() ? "" : std::to_string(i);
    const std::string_view key = node.is_map() ? std::string_view(node.map[i].first) : index;
    if (path.substr(0, key.size()) != key) continue;
    const std::string_view rest = path.substr(key.size());
    if (!rest.empty() && rest[0] != '.') continue;
    const Site* found = find_site(tree, tree.child(from, i), rest.empty() ? rest : rest.substr(1));
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

std::optional<Node> referenced_container(const Node& root, const std::string& path) {
  Interpolator tree(root);
  const Site* site = find_site(tree, tree.root(), path);
  if (site == nullptr || site->parent == nullptr) return std::nullopt;
  try {
    const Value value = tree.read(*site);
    if (value.kind == Value::Kind::container) return *value.site->node;
  } catch (const ConfigError&) {
    // Like in OmegaConf, a reference that leads nowhere is replaced here; when it is read later,
    // it must lead somewhere.
  }
  return std::nullopt;
}

Node* container_at(Node& root, const std::string& key) {
  Interpolator tree(root);
  const auto found = tree.select_from(tree.root(), tree.root(), key, "'" + key + "'", false);
  if (found.result != Interpolator::Selection::Result::found ||
      found.value.kind != Value::Kind::container) {
    return nullptr;
  }
  std::vector<const Site*> way;
  for (const Site* site = found.value.site; site != nullptr; site = site->parent)
    way.push_back(site);
  if (way.back()->node != &root) return nullptr;
  Node* node = &root;
  for (auto step = way.rbegin() + 1; step != way.rend(); ++step) {
    node = node->is_map() ? &node->map[(*step)->index].second : &node->list[(*step)->index];
    if (node != (*step)->node) return nullptr;  // a function made this in place of its text
  }
  return node;
}

}  // namespace cytra::config
